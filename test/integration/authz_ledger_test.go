package integration

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// someLease is an open Lease.
func someLease(namespace, name string) *rqv1.Lease {
	return &rqv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{rqv1.LabelRun: "train"}},
		Spec: rqv1.LeaseSpec{
			Owner: "org:ai:rai", RunRef: rqv1.LeaseRunRef{Name: "train", Namespace: namespace, UID: "run-uid"},
			Slice:          rqv1.LeaseSlice{Role: rqv1.RoleActive, Nodes: []rqv1.NodeGPUs{{Name: "n1", GPUs: 8}}},
			Payer:          rqv1.LeasePayer{Budget: "rai", Owner: "org:ai:rai"},
			PaidByEnvelope: "west", Reason: rqv1.ReasonStart,
			Start: metav1.NewMicroTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
		},
	}
}

func someReservation(namespace, name string) *rqv1.Reservation {
	return &rqv1.Reservation{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: rqv1.ReservationSpec{
		RunRef:        rqv1.NamespacedName{Name: "train", Namespace: namespace},
		EarliestStart: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
	}}
}

func someBudget(name string) *rqv1.Budget {
	return &rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: rqv1.BudgetSpec{
		Owner: "org:" + rqv1.Owner(name), Envelopes: []rqv1.Envelope{{Name: "west", Flavor: "H100-80GB", Concurrency: 64}},
	}}
}

// Only the scheduler writes what is held and what was spent, not even an administrator by accident.
func TestLedgerIsTheSchedulersAlone(t *testing.T) {
	const ns = "authz-ledger"
	makeNamespace(t, ns)
	policyEnforced(t, "jobtree-ledger", func() error {
		return actAs(t, mallory).Create(t.Context(), someLease(ns, "probe"), client.DryRunAll)
	})
	lease, reservation, run, budget := someLease(ns, "train-0"), someReservation(ns, "train"),
		runAs(ns, "train", "org:ai:rai"), someBudget(ns)
	writer := actAs(t, scheduler)
	for _, object := range []client.Object{lease, reservation, run, budget} {
		if err := writer.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { remove(t, writer, budget) })
	for _, c := range []struct {
		name   string
		object client.Object
		// status says that patch is one of the subresource.
		status bool
		patch  string
		want   string
	}{
		{"close a Lease", lease, true,
			`{"status":{"closed":true,"ended":"2026-01-01T01:00:00.000000Z","closureReason":"Completed"}}`,
			"writes leases.rq.davidlangworthy.io/status"},
		{"another payer", lease, false, `{"spec":{"payer":{"budget":"mm","owner":"org:ai:mm"}}}`, ""},
		{"another Run's Lease", lease, false, `{"metadata":{"labels":{"rq.davidlangworthy.io/run":"other"}}}`,
			"writes leases.rq.davidlangworthy.io"},
		{"a Lease of another domain", lease, false, `{"metadata":{"annotations":{"rq.davidlangworthy.io/domain":"b"}}}`,
			"writes leases.rq.davidlangworthy.io"},
		{"a Lease to be collected", lease, false,
			`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"gone"}]}}`,
			"writes leases.rq.davidlangworthy.io"},
		{"a Lease for ever", lease, false, `{"metadata":{"finalizers":["example.com/mine"]}}`, "finalizer"},
		{"a sooner start", reservation, false, `{"spec":{"earliestStart":"2025-01-01T00:00:00Z"}}`,
			"writes reservations.rq.davidlangworthy.io"},
		{"release a Reservation", reservation, true, `{"status":{"state":"Released"}}`,
			"writes reservations.rq.davidlangworthy.io/status"},
		{"complete a Run", run, true, `{"status":{"phase":"Completed"}}`, "writes runs.rq.davidlangworthy.io/status"},
		{"speak for a Run", run, true, `{"status":{"message":"all is well"}}`, "writes runs.rq.davidlangworthy.io/status"},
		{"free a Budget", budget, true, `{"status":{"envelopes":null,"observedGeneration":99}}`,
			"writes budgets.rq.davidlangworthy.io/status"},
	} {
		t.Run(c.name, func(t *testing.T) {
			target, patch := c.object.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(c.patch))
			err := patched(t, actAs(t, mallory), target, patch, c.status)
			switch c.want {
			case "":
				expect(t, c.patch, err, "the spec of a Lease is immutable")
			case "finalizer":
				refused(t, c.patch, err, "metadata.finalizers: nobody may add finalizers, such as example.com/mine, to a GPU lease",
					"leave it out")
			default:
				refused(t, c.patch, err, "only the scheduler, "+scheduler.UserName+", "+c.want, "not user mallory",
					"--as="+scheduler.UserName+" --as-group=system:masters")
			}
			unchanged(t, c.object)
		})
	}
	t.Run("benign", func(t *testing.T) { benignLedger(t, lease, reservation) })
	t.Run("delete", func(t *testing.T) { deleteLedger(t, lease, reservation) })
}

func patched(t *testing.T, by client.Client, target client.Object, patch client.Patch, status bool) error {
	t.Helper()
	if status {
		return by.Status().Patch(t.Context(), target, patch)
	}
	return by.Patch(t.Context(), target, patch)
}

// unchanged checks that the API server has an object as it was.
func unchanged(t *testing.T, object client.Object) {
	t.Helper()
	now := object.DeepCopyObject().(client.Object)
	if err := actAs(t, rest.ImpersonationConfig{}).Get(t.Context(), client.ObjectKeyFromObject(object), now); err != nil {
		t.Error(err)
	} else if now.GetResourceVersion() != object.GetResourceVersion() {
		t.Errorf("%T %s has changed", object, object.GetName())
	}
}

// benignLedger edits metadata that means nothing to jobtree, as other controllers do.
func benignLedger(t *testing.T, objects ...client.Object) {
	for _, object := range objects {
		finalizers := `,"finalizers":["example.com/mine"]`
		if _, kept := object.(*rqv1.Lease); kept {
			finalizers = ""
		}
		for _, patch := range []string{`{"metadata":{"annotations":{"note":"seen"}` + finalizers + `}}`,
			`{"metadata":{"finalizers":null}}`} {
			if err := actAs(t, mallory).Patch(t.Context(), object,
				client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
				t.Errorf("%s: %v", patch, err)
			}
		}
		if err := actAs(t, mallory).Update(t.Context(), object); err != nil {
			t.Errorf("storing the same again: %v", err)
		}
	}
}

func deleteLedger(t *testing.T, lease *rqv1.Lease, reservation *rqv1.Reservation) {
	by := actAs(t, mallory)
	for _, object := range []client.Object{lease, reservation} {
		refused(t, fmt.Sprintf("delete %T", object), by.Delete(t.Context(), object.DeepCopyObject().(client.Object)),
			"only the scheduler, "+scheduler.UserName+", deletes ", "not user mallory", "what was spent stays on record",
			"--as="+scheduler.UserName+" --as-group=system:masters")
		refused(t, fmt.Sprintf("delete all %T", object), by.DeleteAllOf(t.Context(), object.DeepCopyObject().(client.Object),
			client.InNamespace(object.GetNamespace())), "deletes ")
		unchanged(t, object)
	}
	// As the message says, an administrator can.
	_, stderr, err := apiServer(t).Kubectl(t.Context(), "delete", "leases.rq.davidlangworthy.io", "-n", lease.Namespace,
		lease.Name,
		"--as="+scheduler.UserName, "--as-group=system:masters")
	if err != nil {
		t.Errorf("%v: %s", err, stderr)
	}
}

// The controllers that clean up are not stopped: what is left in a deleted namespace goes, and what a deleted Run
// owned.
func TestControllersCollectTheLedger(t *testing.T) {
	const ns = "authz-collect"
	admin, writer := actAs(t, rest.ImpersonationConfig{}), actAs(t, scheduler)
	policyEnforced(t, "jobtree-ledger", func() error {
		return actAs(t, mallory).Create(t.Context(), someLease("default", "probe"), client.DryRunAll)
	})
	if err := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}); err != nil {
		t.Fatal(err)
	}
	run, lease, reservation := runAs(ns, "train", "org:ai:rai"), someLease(ns, "train-0"), someReservation(ns, "train")
	if err := admin.Create(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	reservation.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(run, rqv1.GroupVersion.WithKind("Run"))}
	for _, object := range []client.Object{lease, reservation} {
		if err := writer.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	gone := func(object client.Object) func() error {
		return func() error {
			err := admin.Get(t.Context(), client.ObjectKeyFromObject(object), object)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return errors.Join(errors.New("it is still there"), err)
		}
	}
	remove(t, admin, run)
	eventually(t, "the Run's Reservation", gone(reservation))
	unchanged(t, lease)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	remove(t, admin, namespace)
	eventually(t, "the namespace", gone(namespace))
}
