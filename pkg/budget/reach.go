package budget

// Reaches reports whether an envelope may pay on a node that carries labels (R3). One that is gone goes on paying for
// what it pays for already, anywhere (R8).
func (a *Accounts) Reaches(k Key, labels map[string]string) bool {
	payer := a.Budget(k.Budget)
	if payer == nil {
		return true
	}
	for i := range payer.Spec.Envelopes {
		if e := &payer.Spec.Envelopes[i]; e.Name == k.Envelope {
			return matches(e.Selector, labels)
		}
	}
	return true
}
