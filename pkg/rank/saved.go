package rank

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// ahead is how far a program's clock may be ahead of ours for its word to count.
const ahead = time.Minute

// shown is how many characters of a word that is no time are repeated.
const shown = 64

// SavedAt returns when a program has saved its work last, by its word on a Run or a pod (R45), now at the latest; zero
// when it says nothing. A word that says no time, or one to come, is wrong, and counts for nothing.
func SavedAt(o metav1.Object, now time.Time) (at time.Time, wrong string) {
	word, says := o.GetAnnotations()[rqv1.AnnotationSavedAt]
	if !says {
		return time.Time{}, ""
	}
	at, err := time.Parse(time.RFC3339, word)
	switch {
	case err != nil:
		return time.Time{}, fmt.Sprintf("%.*q is not a time such as %s", shown, word, now.UTC().Format(time.RFC3339))
	case at.After(now.Add(ahead)):
		return time.Time{}, fmt.Sprintf("%s is in the future", word)
	case at.After(now):
		return now, ""
	}
	return at, ""
}
