package book

import "github.com/davidlangworthy/jobtree/pkg/budget"

// AsideBeside returns what is set aside for ranks that have places which other envelopes pay for, by who keeps it: what
// is paid for twice until those ranks run.
func (b *Book) AsideBeside() map[budget.Key]int {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	out := map[budget.Key]int{}
	for _, g := range b.roster.gangs {
		for index := range g.aside {
			if m := g.rankAt(index); m != nil {
				if _, paid := b.accounts.Charge(leaseName(m.pod).String()); paid {
					out[g.kept[index].Payer] += g.kept[index].GPUs
				}
			}
		}
	}
	return out
}
