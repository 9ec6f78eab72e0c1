package ending

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestAvoided tells which nodes rank 0 avoids an hour at the latest after deaths, and which of them are shut to it.
func TestAvoided(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const people, taint, fault = "EvictionByEvictionAPI", "DeletionByTaintManager", "UnexpectedAdmissionError"
	type death struct {
		node, sign string
		ago        time.Duration
	}
	for name, c := range map[string]struct {
		deaths  []death
		avoided []string
		shut    []string
	}{
		"nothing happened":      {},
		"people evicted it":     {deaths: []death{{"a", people, time.Minute}}},
		"people, for two nodes": {deaths: []death{{"a", people, 2 * time.Minute}, {"b", taint, time.Minute}}},
		"people, again": {deaths: []death{{"a", people, 6 * time.Minute}, {"a", taint, time.Minute}},
			avoided: []string{"a"}},
		"people, again after ten minutes": {deaths: []death{{"a", people, 11 * time.Minute}, {"a", people, time.Minute}}},
		"the node did":                    {deaths: []death{{"a", fault, time.Minute}}, avoided: []string{"a"}},
		"the node did, an hour ago":       {deaths: []death{{"a", fault, time.Hour}}},
		"people, and the node": {deaths: []death{{"a", people, 2 * time.Minute}, {"a", fault, time.Minute}},
			avoided: []string{"a"}},
		"the node did, again": {deaths: []death{{"a", fault, 6 * time.Minute}, {"b", fault, 3 * time.Minute},
			{"a", fault, time.Minute}}, avoided: []string{"a", "b"}, shut: []string{"a"}},
		"the node did, again after ten minutes": {deaths: []death{{"a", fault, 12 * time.Minute}, {"a", fault, time.Minute}},
			avoided: []string{"a"}},
	} {
		var deaths []rqv1.RunDeath
		for i, d := range c.deaths {
			deaths = append(deaths, rqv1.RunDeath{Pod: types.UID(rune('a' + i)), Node: d.node, Sign: d.sign,
				Cause: rqv1.CauseNode, At: metav1.NewTime(noon.Add(-d.ago))})
		}
		deaths = append(deaths, rqv1.RunDeath{Pod: "other", Index: 1, Node: "c", Sign: fault, Cause: rqv1.CauseNode,
			At: metav1.NewTime(noon)}, rqv1.RunDeath{Pod: "own", Node: "d", Cause: rqv1.CauseProgram, At: metav1.NewTime(noon)})
		avoided, shut := Avoided(deaths, 0, noon)
		if diff := cmp.Diff([][]string{c.avoided, c.shut}, [][]string{avoided, shut}); diff != "" {
			t.Errorf("%s: avoided, shut (-want +got):\n%s", name, diff)
		}
	}
}
