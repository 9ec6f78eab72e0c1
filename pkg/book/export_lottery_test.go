package book

// DrawsBy has Runs be drawn by a policy (R20), as the argument lottery does.
func (b *Book) DrawsBy(policy string) { b.args.Lottery = policy }
