package view

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// nodesShown is how many nodes of a group the text names unless all are asked for.
const nodesShown = 4

// NodesInWords names nodes: a few, or all of them.
func NodesInWords(nodes []string, wide bool) string {
	if wide || len(nodes) <= nodesShown {
		return strings.Join(nodes, ", ")
	}
	return fmt.Sprintf("%s and %d more nodes", strings.Join(nodes[:nodesShown], ", "), len(nodes)-nodesShown)
}

// Because appends a reason and a message, where there are any.
func Because(reason, message string) string {
	words := ""
	if reason != "" {
		words = " (" + reason + ")"
	}
	if message != "" {
		words += ": " + printers.EscapeTerminal(message)
	}
	return words
}

// At prints an instant as data has it, in UTC.
func At(t metav1.Time) string { return t.UTC().Format(time.RFC3339) }

// Clock prints the time of day of an instant in the zone of the present, with the date where it is another day.
func Clock(t metav1.Time, now time.Time) string { return session.Clock(t.Time, now) }

// ZonedClock does likewise, and names the zone.
func ZonedClock(t metav1.Time, now time.Time) string { return Clock(t, now) + " " + now.Format("MST") }

// FullName is namespace/name.
func FullName(n rqv1.NamespacedName) string { return n.Namespace + "/" + n.Name }

// TimeOf is when a GPU lease opened or, if it has, closed.
func TimeOf(lease *rqv1.Lease) metav1.Time {
	if ended := lease.Status.Ended; ended != nil {
		return metav1.Time{Time: ended.Time}
	}
	return metav1.Time{Time: lease.Spec.Start.Time}
}

// NothingFound says that there is nothing to show, and where that was looked for.
func NothingFound(what, namespace string) string {
	if namespace == "" {
		return fmt.Sprintf("No %s found.", what)
	}
	return fmt.Sprintf("No %s found in namespace %s.", what, namespace)
}

// Pointers makes API objects of the items of a list.
func Pointers[T any, P interface {
	*T
	client.Object
}](items []T) []client.Object {
	objects := make([]client.Object, len(items))
	for i := range items {
		objects[i] = P(&items[i])
	}
	return objects
}

// SelectorText prints a selector, sorted by key.
func SelectorText(selector map[string]string) string {
	pairs := make([]string, 0, len(selector))
	for key, value := range selector {
		pairs = append(pairs, key+"="+value)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

// CutsInWords says what became of each Run that was cut.
func CutsInWords(cuts []rqv1.Cut) []string {
	var words []string
	for _, cut := range cuts {
		words = append(words, fmt.Sprintf("%s %s (%d GPUs freed)", FullName(cut.Run), CutInWords(cut), cut.GPUs))
	}
	return words
}

// CutInWords says what became of the Run.
func CutInWords(cut rqv1.Cut) string {
	switch cut.Action {
	case rqv1.CutLottery:
		return "cut by lottery"
	case rqv1.CutDropSpare:
		return "gave up spares"
	case rqv1.CutReturn:
		if cut.Width != nil {
			return fmt.Sprintf("gave back what was beyond %d GPUs", *cut.Width)
		}
		return "gave back what was beyond its total"
	}
	if cut.Width != nil {
		return fmt.Sprintf("shrunk to %d GPUs", *cut.Width)
	}
	return "shrunk"
}

// Timestamp prints an instant to the second, in UTC; nil is empty.
func Timestamp(t *metav1.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// NoteOf is a note in brackets, or nothing when there is nothing to note.
func NoteOf(what, text string) string {
	if text == "" {
		return ""
	}
	return Bracketed(what + " " + text)
}

// Bracketed is a note in brackets, or nothing when there is nothing to note.
func Bracketed(text string) string {
	if text == "" {
		return ""
	}
	return " [" + text + "]"
}

// Number is an amount of GPU-hours as data.
func Number(s budget.Spend) json.Number { return json.Number(s.String()) }

// Short cuts GPU-hours off after the second place.
func Short(hours json.Number) string {
	whole, places, _ := strings.Cut(string(hours), ".")
	return whole + "." + places[:2]
}

// Counted is a number of things.
func Counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
