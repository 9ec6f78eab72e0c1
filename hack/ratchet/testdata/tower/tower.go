// Package tower has one thing of each kind that is measured.
package tower

import "strings"

type thing struct {
	part
	low, high int
	marks     map[string]bool
}

type part struct{ name string }

type cellar struct{}

type roof struct{ things []*thing }

func (t *thing) isLow() bool { return t.low > 0 }

func (t *thing) isHigh() bool { return t.high > 0 && !t.isLow() }

func named(t *thing) string { return strings.ToUpper(t.name) }

func (cellar) sees(t *thing) bool { return t.isHigh() }

func (cellar) uses(t *thing, ok func(node string) bool) bool { return ok(t.name) && t.high == 0 }

func (cellar) writes(t *thing) {
	t.low++
	t.marks["low"] = true
}

// climbs is a few lines long,
// of which these are none.
func (c cellar) climbs(r *roof) {
	r.adds(&thing{})

	c.writes(nil)
}

func (r *roof) adds(t *thing) {
	t.low, t.high = 1, 2
	delete(t.marks, "low")
	r.things = append(r.things, t)
}
