package book

import "fmt"

// Looks counts how often gangs that wait have been looked at.
func (b *Book) Looks() int64 {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	return b.waiting.looks
}

// Misfiled lists the Runs that wait and are not found by what they wait for.
func (b *Book) Misfiled() []string {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	var out []string
	for _, g := range b.waiting.gangs {
		f := &g.filed
		if g.woken || g.shape == nil && !g.complete() {
			continue // it is going to be
		}
		switch stands := g.standsInLine(); {
		case f.crowd == nil || f.crowd.crowdKey != crowdOf(g):
			out = append(out, fmt.Sprintf("%s waits for %+v, and is filed for %+v", g.run.Name, crowdOf(g), f.crowd))
		case stands != f.inLine || stands && f.of != g.scarce():
			out = append(out, fmt.Sprintf("%s stands in line for %+v, and is filed for %+v", g.run.Name, g.scarce(), f.of))
		}
	}
	return out
}
