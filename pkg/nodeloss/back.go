package nodeloss

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Writer is the name under which the scheduler writes Nodes: the API server keeps with each field who has set it.
const Writer = "jobtree-scheduler"

// ancient is the name to which the API server puts the fields of those who wrote long ago when there are many writers.
const ancient = "ancient-changes"

// The words of a record around the type of the condition that a node was lost by.
const (
	conditionBegins = "condition "
	conditionGoesOn = " is True: "
)

// Back returns from when on a lost node is to be given back if nothing is seen until then (R26); zero for not at all,
// as things are. A sign that is gone has to stay away for as long as it has to stay to be evidence.
func (r Rules) Back(s *Sight) time.Time {
	if s.gone || s.node == nil || !r.healed(s.node) || !Ours(s.node) {
		return time.Time{}
	}
	return s.changed.Add(r.gathering())
}

// healed reports whether a node was lost by a checker's sign, and shows neither it nor another sign. A checker that
// does not know, and a node that is not Ready, as in the middle of its repair, say nothing of that.
func (r Rules) healed(node *corev1.Node) bool {
	_, reason, message, told := Told(node.Annotations[rqv1.AnnotationLost])
	if _, lost := Recorded(node); !lost || !told || reason != Condition {
		return false
	}
	rest, begins := strings.CutPrefix(message, conditionBegins)
	kind, _, goesOn := strings.Cut(rest, conditionGoesOn)
	if !begins || !goesOn {
		return false // a person has written it
	}
	if c := condition(node, corev1.NodeConditionType(kind)); c != nil && c.Status != corev1.ConditionFalse {
		return false
	}
	if c := condition(node, corev1.NodeReady); c != nil && c.Status != corev1.ConditionTrue {
		return false
	}
	_, _, evident := r.Evident(node)
	return !evident
}

// Ours reports whether the cordon of a node that is recorded as lost is the scheduler's alone. It is not if the node
// was cordoned before, if somebody has uncordoned it and cordoned it again since, or if a checker says that it wants
// the node to be cordoned too. Whoever cordons a cordoned node and says nothing of it cannot be known.
func Ours(node *corev1.Node) bool {
	if node.Annotations[rqv1.AnnotationCordoned] == "" || !node.Spec.Unschedulable {
		return false
	}
	for i := range Presets {
		if keeps := Presets[i].Keeps; keeps != "" && node.Annotations[keeps] != "" {
			return false
		}
	}
	return !slices.ContainsFunc(cordoners(node), func(who string) bool { return who != Writer && who != ancient })
}

// cordoners returns who has set the field that cordons a node, as far as the API server tells.
func cordoners(node *corev1.Node) []string {
	var out []string
	for i := range node.ManagedFields {
		entry := &node.ManagedFields[i]
		var set struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &set) != nil {
			continue
		}
		if _, cordons := set.Spec["f:unschedulable"]; cordons {
			out = append(out, entry.Manager)
		}
	}
	return out
}
