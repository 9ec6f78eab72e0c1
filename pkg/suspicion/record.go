package suspicion

import (
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// For is how long a node is suspect after the last mark against it.
const For = 24 * time.Hour

// mostMarks is how many marks a record keeps: the latest.
const mostMarks = 8

// Why is what a mark is for, in a word.
type Why string

// Values of Why.
const (
	// TwoOwners: ranks of two owners died there within an hour, each the first of its Run.
	TwoOwners Why = "TwoOwners"
	// LivesElsewhere: a rank died there again, was moved, and lives on another node.
	LivesElsewhere Why = "LivesElsewhere"
	// EndedRank: the node turned a rank away or lost track of it, or a device of it was broken.
	EndedRank Why = "EndedRank"
)

// Mark is one thing that speaks against a node.
type Mark struct {
	At      time.Time `json:"at"`
	Why     Why       `json:"why"`
	Message string    `json:"message"`
	// Owner is whose Run says so, if it is one owner's word alone.
	Owner rqv1.Owner `json:"owner,omitempty"`
}

// Record is what a Node's annotation says: the marks against it, those that came first before others.
type Record struct {
	Marks []Mark `json:"marks,omitempty"`
	// Cleared is when somebody said that what came before is settled; zero when nobody did.
	Cleared time.Time `json:"cleared,omitzero"`
}

// Of returns the record of a Node: an empty one where there is none, or none that can be read.
func Of(node *corev1.Node) Record {
	r := Record{}
	if json.Unmarshal([]byte(node.Annotations[rqv1.AnnotationSuspect]), &r) != nil {
		return Record{}
	}
	return r
}

// String returns the annotation's value.
func (r Record) String() string {
	text, err := json.Marshal(r)
	if err != nil {
		return "" // of a time after the year 9999
	}
	return string(text)
}

// Until returns until when the node is suspect; zero when nothing speaks against it.
func (r Record) Until() (until time.Time) {
	for _, m := range r.Marks {
		if m.At.After(r.Cleared) && m.At.Add(For).After(until) {
			until = m.At.Add(For)
		}
	}
	return until
}

// Clear says that what came before an instant is settled, and so are the marks that somebody has seen who says so,
// whatever the clock of either says.
func (r Record) Clear(now time.Time) Record {
	r.Cleared = now.UTC()
	for _, m := range r.Marks {
		if m.At.After(r.Cleared) {
			r.Cleared = m.At
		}
	}
	return r
}

// By reports whether the node is suspect at an instant by one owner's word.
func (r Record) By(owner rqv1.Owner, now time.Time) bool {
	return slices.ContainsFunc(r.Marks, func(m Mark) bool {
		return m.Owner == owner && m.At.After(r.Cleared) && now.Before(m.At.Add(For))
	})
}

// With adds a mark, and reports whether that tells anything new: the record does not have it, it is of after that was
// cleared, and not older than all of as many as it keeps.
func (r Record) With(m Mark) (Record, bool) {
	m.At = m.At.UTC().Truncate(time.Second)
	known := slices.ContainsFunc(r.Marks, func(o Mark) bool { return o.Why == m.Why && o.At.Equal(m.At) })
	if known || !m.At.After(r.Cleared) {
		return r, false
	}
	out := Record{Marks: append(slices.Clone(r.Marks), m), Cleared: r.Cleared}
	slices.SortStableFunc(out.Marks, func(a, b Mark) int { return a.At.Compare(b.At) })
	out.Marks = out.Marks[max(0, len(out.Marks)-mostMarks):]
	return out, !slices.Equal(out.Marks, r.Marks)
}
