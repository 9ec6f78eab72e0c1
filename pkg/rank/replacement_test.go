package rank_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

func replaces(text string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{rqv1.AnnotationReplaces: text}}}
}

// The record of a swap says after a restart what it said before.
func TestTheRecordOfASwapIsReadBack(t *testing.T) {
	names := rapid.OneOf(rapid.Just(""), rapid.StringMatching(`[a-z0-9]([-.a-z0-9]{0,60}[a-z0-9])?`))
	rapid.Check(t, func(t *rapid.T) {
		want := rank.Replacement{Lost: names.Draw(t, "lost"), Spare: names.Draw(t, "spare"),
			SpareUID: types.UID(names.Draw(t, "spareUID")), Node: names.Draw(t, "node")}
		if got, ok := rank.ReplacementOf(replaces(want.Annotation())); !ok || got != want {
			t.Fatalf("%s is read as %+v (%v), want %+v", want.Annotation(), got, ok, want)
		}
	})
}

// A pod that says nothing, or nothing that makes sense, takes nobody's place; fields of a later version are no harm.
func TestWhoIsNoReplacement(t *testing.T) {
	if r, ok := rank.ReplacementOf(&corev1.Pod{}); ok {
		t.Errorf("a pod without the annotation replaces %+v", r)
	}
	for _, text := range []string{"", "n1", "{", `"n1"`, "[]", `{"lost":1}`, `{"lost":"n1"} {}`} {
		if r, ok := rank.ReplacementOf(replaces(text)); ok {
			t.Errorf("%q replaces %+v", text, r)
		}
	}
	want := rank.Replacement{Lost: "n1", Node: "n2"}
	if r, ok := rank.ReplacementOf(replaces(`{"lost":"n1","node":"n2","since":"tomorrow"}`)); !ok || r != want {
		t.Errorf("with a field of a later version: %+v, %v", r, ok)
	}
}
