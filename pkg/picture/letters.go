package picture

import (
	"fmt"
	"strings"
)

// nobody stands for Runs that no letter is left for.
const nobody = '#'

// Letters gives every Run, by NAMESPACE/NAME, the letter that stands for it in pictures, and keeps it.
type Letters struct {
	order []string
	of    map[string]byte
}

// Add gives a Run its letter, once: one of its name, or else the next that is free. The 27th and later ones have none.
func (l *Letters) Add(run string) {
	if _, ok := l.of[run]; ok {
		return
	}
	if l.of == nil {
		l.of = map[string]byte{}
	}
	_, name, _ := strings.Cut(run, "/")
	for _, letter := range []byte(strings.ToUpper(name) + "ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		if letter >= 'A' && letter <= 'Z' && !l.taken(letter) {
			l.of[run] = letter
			l.order = append(l.order, run)
			return
		}
	}
}

// Keep takes the letters from the Runs that are not among some, so that others can have them.
func (l *Letters) Keep(runs []Holder) {
	there := map[string]bool{}
	for i := range runs {
		there[runs[i].Run] = true
	}
	var order []string
	for _, run := range l.order {
		if there[run] {
			order = append(order, run)
		} else {
			delete(l.of, run)
		}
	}
	l.order = order
}

func (l *Letters) taken(letter byte) bool {
	for _, other := range l.of {
		if other == letter {
			return true
		}
	}
	return false
}

// Of returns the letter of a Run.
func (l *Letters) Of(run string) byte {
	if letter, ok := l.of[run]; ok {
		return letter
	}
	return nobody
}

// place is where a Run comes among those that have letters; after all of them for one that has none.
func (l *Letters) place(run string) int {
	for i, other := range l.order {
		if other == run {
			return i
		}
	}
	return len(l.order)
}

// paint colours what stands for the n-th Run.
func paint(n int, text string) string { return fmt.Sprintf("\033[%dm%s\033[0m", 31+n%6, text) }
