package budget

import (
	"maps"
	"slices"
	"strings"
)

// Class returns the payer class of nodes with these labels: nodes of one class are paid for by the same envelopes. It
// returns -1 where nobody pays.
func (c *Cover) Class(labels map[string]string) int {
	var payers []int
	for i := range c.Offers {
		if c.Offers[i].Pods > 0 && matches(c.Offers[i].selector, labels) {
			payers = append(payers, i)
		}
	}
	if len(payers) == 0 {
		return -1
	}
	for class, known := range c.classes {
		if slices.Equal(known, payers) {
			return class
		}
	}
	c.classes = append(c.classes, payers)
	return len(c.classes) - 1
}

// Classes returns how many classes of nodes there are by now.
func (c *Cover) Classes() int { return len(c.classes) }

// Labels returns labels of nodes on which an offer pays, with * for any value.
func (o *Offer) Labels() map[string]string { return o.selector }

// Where says on which nodes an offer pays, such as "nodes with region=us-east".
func (o *Offer) Where() string {
	if len(o.selector) == 0 {
		return "any node"
	}
	var labels []string
	for _, key := range slices.Sorted(maps.Keys(o.selector)) {
		labels = append(labels, key+"="+o.selector[key])
	}
	return "nodes with " + strings.Join(labels, ",")
}

// matches reports whether labels carry everything that a selector asks for; `*` asks for any value.
func matches(selector, labels map[string]string) bool {
	for key, want := range selector {
		if got, ok := labels[key]; !ok || (want != "*" && got != want) {
			return false
		}
	}
	return true
}
