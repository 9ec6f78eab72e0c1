package rank

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Replacement says whose place a pod takes that has the rank of a lost one (R26). The pod carries it as an annotation
// from its creation on: it is the record of the swap, and whoever decides goes by it, as far as the ledger agrees. Who
// pays is not in it: that is the ledger's to say.
type Replacement struct {
	// Lost is the node that the rank was lost with; empty when it was lost otherwise.
	Lost string `json:"lost,omitempty"`
	// Sign is how that node, which stands, ended the rank or turned it away, in a word, or how the rank died there; empty
	// when the node was lost.
	Sign string `json:"sign,omitempty"`
	// After is the pod that had the rank before and died because of its program (R34), by its UID; empty when it was lost.
	// If Lost says on which node, the rank goes to another, else it is started again where it was.
	After types.UID `json:"after,omitempty"`
	// Spare and SpareUID are the pod that makes room, and Node is where; empty when none does.
	Spare    string    `json:"spare,omitempty"`
	SpareUID types.UID `json:"spareUID,omitempty"`
	Node     string    `json:"node,omitempty"`
}

// Annotation returns the value of the pod's annotation.
func (r Replacement) Annotation() string {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // it holds strings alone
	}
	return string(text)
}

// ReplacementOf returns whose place a pod takes; false for a pod that is nobody's replacement.
func ReplacementOf(pod *corev1.Pod) (Replacement, bool) {
	r := Replacement{}
	text, ok := pod.Annotations[rqv1.AnnotationReplaces]
	return r, ok && json.Unmarshal([]byte(text), &r) == nil
}

// RestartOf returns whose place a pod takes that starts a rank again which died because of its program (R34); false for
// any other pod.
func RestartOf(pod *corev1.Pod) (Replacement, bool) {
	r, ok := ReplacementOf(pod)
	return r, ok && r.After != ""
}
