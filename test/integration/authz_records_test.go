package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/test/controlplane"
)

// What Leases spent that are gone is in ConfigMaps; nobody but the scheduler makes, changes or deletes them.
func TestRecordsAreTheSchedulersAlone(t *testing.T) {
	label := map[string]string{rqv1.GroupName + "/record": "true"}
	recordNamed := func(name string, labels map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: controlplane.Namespace, Name: name, Labels: labels},
			Data:       map[string]string{"record.json": "{}"},
		}
	}
	by, writer := actAs(t, mallory), actAs(t, schedulerAccount)
	policyEnforced(t, "jobtree-records", func() error {
		return by.Create(t.Context(), recordNamed("probe", label), client.DryRunAll)
	})
	record := recordNamed("settled-authz", label)
	if err := writer.Create(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, actAs(t, scheduler), record) })
	patch := func(text string) error {
		return by.Patch(t.Context(), record.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(text)))
	}
	for what, err := range map[string]error{
		"forge":  by.Create(t.Context(), recordNamed("settled-forged", label)),
		"edit":   patch(`{"data":{"record.json":"nothing"}}`),
		"hide":   patch(`{"metadata":{"labels":null}}`),
		"delete": by.Delete(t.Context(), record.DeepCopy()),
		"delete all": by.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(controlplane.Namespace),
			client.MatchingLabels(label)),
	} {
		refused(t, what, err, "only the scheduler, "+scheduler.UserName+
			", writes the record of what was spent, not user mallory")
	}
	unchanged(t, record)
	install(t, recordNamed("notes", nil))
}
