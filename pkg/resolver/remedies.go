package resolver

import "fmt"

// Remedies are sentences that say, in the order of R19, what each kind of cut can give of a deficit, in GPUs. A kind
// that has nothing to give, or that is not reached, is left out. Of spares all around are named, since groups may yet
// come to lie elsewhere there; what is left for the kinds after them goes by those of the candidates, which are
// among all around.
func Remedies(deficit int, candidates, around []Candidate) []string {
	var loans, spares, steps, tickets, all int
	for i := range around {
		all += around[i].spareGPUs()
	}
	for _, t := range candidates {
		spares += t.spareGPUs()
		for _, s := range t.Steps {
			if s.Loan {
				loans += gpus(s.Holds)
			} else {
				steps += gpus(s.Holds)
			}
		}
		if t.draws() {
			tickets += gpus(t.Rest)
		}
	}
	var remedies []string
	for _, kind := range []struct {
		sentence   string
		told, gpus int
	}{
		{"Take back GPUs that Runs hold beyond their totalGPUs", loans, loans},
		{"Drop spares in scope", all, spares},
		{"Shrink elastic runs by step size", steps, steps},
		{"Run fair lottery if deficit remains", tickets, tickets},
	} {
		if n := min(kind.told, deficit); n > 0 {
			remedies = append(remedies, fmt.Sprintf("%s (%s)", kind.sentence, count(n)))
		}
		deficit -= min(kind.gpus, deficit)
	}
	return remedies
}

// count writes a number of GPUs.
func count(n int) string {
	if n == 1 {
		return "1 GPU"
	}
	return fmt.Sprintf("%d GPUs", n)
}
