package explain

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/world"
	"github.com/davidlangworthy/jobtree/pkg/dump"
)

// question is one about a Run of team rai, as old as it is, with its answer if it has one.
func question(uid types.UID, name string, age time.Duration, answer any) *corev1.ConfigMap {
	c := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: world.SchedulerNamespace, Name: dump.ConfigMap, UID: uid,
			CreationTimestamp: clitest.After(time.Hour - age)}}
	dump.Ask(c, types.NamespacedName{Namespace: "rai", Name: name})
	if answer != nil {
		dump.Answer(c, nil, answer)
	}
	return c
}

// TestDebug has the scheduler answer, or somebody else be in the way. Questions of this API server have no UID unless
// somebody else asks them.
func TestDebug(t *testing.T) {
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, dump.ConfigMap)
	other := apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, dump.ConfigMap, nil)
	for name, test := range map[string]struct {
		there    *corev1.ConfigMap // when it is asked
		answered *corev1.ConfigMap // when the answer is looked for; nil for the one to the question
		deletes  error
		out, err string
		asked    []string
	}{
		"an answer": {out: `"mine": 1`, asked: []string{"create", "get", "delete"}},
		"to a question that somebody else asked instead": {answered: question("second", "other", 0, "secret"),
			err:   "somebody has deleted the question, ConfigMap jobtree-system/jobtree-dump; try again",
			asked: []string{"create", "get", "delete"}},
		"beside one that waits": {there: question("first", "other", 59*time.Second, nil),
			err:   "somebody else is asking, by ConfigMap jobtree-system/jobtree-dump; try again in a minute",
			asked: []string{"create", "get"}},
		"after one whose asker was killed": {there: question("first", "other", time.Minute, "secret"), out: `"mine": 1`,
			asked: []string{"create", "get", "delete", "create", "get", "delete"}},
		"that is deleted already":  {deletes: gone, out: `"mine": 1`, asked: []string{"create", "get", "delete"}},
		"that is another's by now": {deletes: other, out: `"mine": 1`, asked: []string{"create", "get", "delete"}},
		"that may not be deleted": {deletes: clitest.Forbidden("delete", "configmaps"), out: `"mine": 1`,
			err:   "ConfigMap jobtree-system/jobtree-dump with the answer is still there, delete it: configmaps",
			asked: []string{"create", "get", "delete"}},
	} {
		server := clitest.NewServer(t)
		if test.there != nil {
			server.Set(test.there)
		}
		created := test.there == nil
		server.Before = func(request string) error {
			switch verb, _, _ := strings.Cut(request, " "); {
			case verb == "delete" && created && test.deletes != nil:
				return test.deletes
			case verb == "delete":
				created = true
			case verb == "get" && created && test.answered != nil:
				server.Set(test.answered)
			case verb == "get" && created:
				server.Set(question("", "mine", 0, map[string]int{"mine": 1}))
			}
			return nil
		}
		said := clitest.Do(t, server, Command, "mine", "--debug")
		if !strings.Contains(said.Out, test.out) || strings.Contains(said.Out, "secret") ||
			!strings.HasPrefix(said.Err, test.err) || (test.err == "") != (said.Err == "") {
			t.Errorf("%s: it says %+v", name, said)
		}
		var asked []string
		for _, request := range server.Asked("") {
			if verb, what, _ := strings.Cut(request, " "); strings.HasPrefix(what, "configmaps") {
				asked = append(asked, verb)
			}
		}
		if !slices.Equal(asked, test.asked) {
			t.Errorf("%s: it asks the API server to %q, want %q", name, asked, test.asked)
		}
	}
}
