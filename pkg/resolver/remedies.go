package resolver

import "fmt"

// Remedies are sentences that say, in the order of R19, what each kind of cut can give of a deficit, in GPUs. A kind
// that has nothing to give, or that is not reached, is left out. Spares are those of all around: groups may yet come to
// lie elsewhere there.
func Remedies(deficit int, candidates, around []Candidate) []string {
	var loans, spares, steps, tickets int
	for i := range around {
		spares += around[i].spareGPUs()
	}
	for _, t := range candidates {
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
		sentence string
		gpus     int
	}{
		{"Take back GPUs that Runs hold beyond their totalGPUs", loans},
		{"Drop spares in scope", spares},
		{"Shrink elastic runs by step size", steps},
		{"Run fair lottery if deficit remains", tickets},
	} {
		if n := min(kind.gpus, deficit); n > 0 {
			remedies = append(remedies, fmt.Sprintf("%s (%s)", kind.sentence, count(n)))
			deficit -= n
		}
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
