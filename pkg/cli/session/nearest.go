package session

import (
	"fmt"
	"strings"
)

// Nearest returns the one of some words that somebody may have meant by another: the same in letters of another case,
// one that begins with it, or one that is a few keystrokes away; empty where none is, or the word is among them.
func Nearest(word string, among []string) string {
	best, distance := "", len(word)/3+2 // of a word with as many mistakes nobody knows what it was to be
	for _, candidate := range among {
		if candidate == word {
			return ""
		}
		n := keystrokes(strings.ToLower(word), strings.ToLower(candidate))
		if len(word) > 1 && strings.HasPrefix(strings.ToLower(candidate), strings.ToLower(word)) {
			n = 0
		}
		if n < distance {
			best, distance = candidate, n
		}
	}
	return best
}

// Meant is a question for whoever may have mistyped a word; empty where it is not known what for.
func Meant(word string, among []string) string {
	if nearest := Nearest(word, among); nearest != "" {
		return fmt.Sprintf("; did you mean %s?", nearest)
	}
	return ""
}

// keystrokes is how many characters are to be added, taken away or replaced to make one word another (the distance of
// Levenshtein).
func keystrokes(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost = 1 + min(before, row[j], row[j+1])
			}
			before, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
