package book

// classes are the gangs of the few kinds that something is looked for every second, so that nobody need go through the thousands
// that only wait.
type classes struct {
	// elastic are malleable Runs that run, and sweeps the opportunistic ones.
	elastic, sweeps map[*gang]bool
}

func newClasses() classes { return classes{elastic: map[*gang]bool{}, sweeps: map[*gang]bool{}} }

// note puts a gang where its Run belongs, which has changed.
func (c *classes) note(g *gang) {
	put := func(class map[*gang]bool, in bool) {
		if in {
			class[g] = true
		} else {
			delete(class, g)
		}
	}
	put(c.elastic, g.started() && g.run.Spec.Malleable != nil)
	put(c.sweeps, g.opportunistic())
}
