package book

// Actions are all that the book asks of others.
type Actions struct {
	ForQueue
	ForControllers
}

// TakeActions returns what has been asked for since the last call.
func (b *Book) TakeActions() Actions { return Actions{b.ToQueue().Take(), b.Controllers().Take()} }
