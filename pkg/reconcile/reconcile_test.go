package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
)

var (
	noon  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	train = types.NamespacedName{Namespace: "ns", Name: "train"}

	errAway  = errors.New("away")
	errQuota = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "train-0", errors.New("exceeded quota"))
)

// recorder is an API server that notes what it is asked and told, in order.
type recorder struct {
	calls []string
	// fails are the errors that calls end with, by their first words.
	fails map[string]error
	no    map[string]bool // the questions that are answered with no
	alive map[types.UID]bool
	ranks []map[string]string
	// stored are Leases that were written before, by name.
	stored map[string]*rqv1.Lease
}

func (r *recorder) call(what string, objects ...string) error {
	r.calls = append(r.calls, strings.Join(append([]string{what}, objects...), " "))
	return r.fails[what]
}

func (r *recorder) Ask(_ context.Context, questions []Question) ([]bool, error) {
	answers := make([]bool, len(questions))
	var asked []string
	for i, q := range questions {
		about := strings.Trim(fmt.Sprint(q.Node, q.Pod.Name, q.UID, q.Lease.Name), " ")
		asked = append(asked, fmt.Sprintf("%s(%s)", q.If, about))
		answers[i] = !r.no[about]
	}
	return answers, r.call("ask", asked...)
}

func (r *recorder) Alive(_ context.Context, _ types.NamespacedName, unseen []types.UID) (map[types.UID]bool, error) {
	return r.alive, r.call("alive", fmt.Sprint(unseen))
}

func (r *recorder) RankLeases(_ context.Context, _ *rqv1.Run, ranks []string) ([]map[string]string, error) {
	return r.ranks, r.call("ranks", ranks...)
}

func (r *recorder) WriteStatus(_ context.Context, _ *lifecycle.Observed, status *rqv1.RunStatus) error {
	return r.call("status", status.Message)
}

func (r *recorder) WriteReservation(_ context.Context, w *lifecycle.Write) (*rqv1.Reservation, error) {
	return w.Reservation, r.call(string(w.Verb), w.Reservation.Name)
}

func (r *recorder) DeletePods(_ context.Context, deletions []lifecycle.Deletion) error {
	var names []string
	for _, d := range deletions {
		grace := "own"
		if d.GraceSeconds != nil {
			grace = fmt.Sprint(*d.GraceSeconds)
		}
		names = append(names, d.Pod.Name+":"+grace)
	}
	return r.call("delete", names...)
}

func (r *recorder) DeleteRun(_ context.Context, run *rqv1.Run) error {
	return r.call("expire", run.Name)
}

func (r *recorder) ReadLease(_ context.Context, name types.NamespacedName) (*rqv1.Lease, error) {
	return r.stored[name.Name], r.call("read", name.Name)
}

func (r *recorder) OpenLease(_ context.Context, lease *rqv1.Lease) (*rqv1.Lease, error) {
	if is := r.stored[lease.Name]; is != nil {
		return is, r.call("find", lease.Name)
	}
	return lease, r.call("open", fmt.Sprintf("%s@%s", lease.Name, lease.Spec.Start.Sub(noon)))
}

func (r *recorder) OutliveLeases(_ context.Context, leases []*rqv1.Lease) error {
	var names []string
	for _, l := range leases {
		names = append(names, fmt.Sprintf("%s@%s", l.Name, l.Status.EndsBy.Sub(noon)))
	}
	return r.call("outlive", names...)
}

func (r *recorder) CloseLeases(_ context.Context, leases []*rqv1.Lease) ([]*rqv1.Lease, error) {
	var names []string
	for _, l := range leases {
		names = append(names, fmt.Sprintf("%s:%s@%s", l.Name, l.Status.ClosureReason, l.Status.Ended.Sub(noon)))
	}
	return leases, r.call("close", names...)
}

func (r *recorder) CreateService(_ context.Context, s *corev1.Service) error {
	return r.call("service", s.Name)
}

func (r *recorder) WriteGuard(_ context.Context, b *policyv1.PodDisruptionBudget) error {
	return r.call("guard", b.Spec.MinAvailable.String())
}

func (r *recorder) DropGuard(_ context.Context, b *policyv1.PodDisruptionBudget) error {
	return r.call("unguard", b.Name)
}

func (r *recorder) AdoptPods(_ context.Context, adopted []lifecycle.Adoption) error {
	var names []string
	for i := range adopted {
		names = append(names, adopted[i].Pod.Name)
	}
	return r.call("adopt", names...)
}

func (r *recorder) ReleasePods(_ context.Context, released []*corev1.Pod) error {
	var names []string
	for _, pod := range released {
		names = append(names, pod.Name)
	}
	return r.call("release", names...)
}

func (r *recorder) TellPods(_ context.Context, words []lifecycle.Word) error {
	var names []string
	for i := range words {
		names = append(names, words[i].Pod.Name)
	}
	return r.call("tell", names...)
}

func (r *recorder) CreatePods(_ context.Context, pods []*corev1.Pod) error {
	var names []string
	for _, p := range pods {
		names = append(names, p.Name+"#"+p.Labels[rqv1.LabelEpoch])
	}
	return r.call("create "+pods[0].Name, names[1:]...)
}

// ranked is a pod or a Lease of a rank of train.
func ranked(rank string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "ns", Name: "train-" + rank, UID: types.UID("uid" + rank),
		Labels: map[string]string{
			rqv1.LabelRun: "train", rqv1.LabelIndex: rank, rqv1.LabelEpoch: "0", rqv1.LabelRole: string(rqv1.RoleActive),
			rqv1.LabelPodUID: "uid" + rank}}
}

func podOf(rank string) *corev1.Pod { return &corev1.Pod{ObjectMeta: ranked(rank)} }

func leaseOf(rank string) *rqv1.Lease {
	return &rqv1.Lease{ObjectMeta: ranked(rank), Spec: rqv1.LeaseSpec{Start: metav1.NewMicroTime(noon.Add(-time.Hour)),
		RunRef: rqv1.LeaseRunRef{Name: "train", UID: "run"},
		Slice:  rqv1.LeaseSlice{Nodes: []rqv1.NodeGPUs{{Name: "n0"}}}}}
}

func closing(rank string) lifecycle.Closing {
	return lifecycle.Closing{Lease: leaseOf(rank), Reason: rqv1.ClosedCompleted}
}

// everything is a decision with one write of each kind.
func everything() lifecycle.Decision {
	return lifecycle.Decision{
		Delete: []lifecycle.Deletion{{Pod: podOf("9")}}, Replace: []*corev1.Pod{podOf("0")},
		Close:   []lifecycle.Closing{closing("1")},
		Service: &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "train"}}, Create: []*corev1.Pod{podOf("1")},
		Status: &rqv1.RunStatus{Phase: rqv1.RunPending, Message: "told"}, After: time.Minute, Retry: time.Second,
	}
}

// observed is train with those pods that everything is about.
func observed() lifecycle.Observed {
	o := lifecycle.Observed{Now: noon}
	o.Name = train
	o.Run = &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train", UID: "run"}}
	o.Pods = []*corev1.Pod{podOf("1"), podOf("9")}
	return o
}

// TestOrder has a decision with one write of each kind carried out, as far as it comes when one of them fails.
func TestOrder(t *testing.T) {
	first := []string{"delete train-9:own", "ranks 0", "create train-0"}
	last := []string{"close train-1:Completed@0s", "service train", "create train-1", "status told"}
	all := append(append([]string{}, first...), last...)
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Run"}, "train", nil)
	failed := func(d *lifecycle.Decision) { d.Status.Phase = rqv1.RunFailed }
	for name, c := range map[string]struct {
		change  func(*lifecycle.Decision)
		at      string
		err     error
		want    []string
		passed  bool // although something failed
		no      map[string]bool
		unsaid  bool
		problem string
		unended string
	}{
		"all goes well":                   {want: all, passed: true},
		"a Run that failed says so first": {change: failed, want: append([]string{"status told"}, all[:6]...), passed: true},
		"and does not get that far":       {change: failed, at: "status", err: errAway, want: []string{"status told"}},
		"nobody can say it": {change: failed, at: "status", err: invalid,
			want: append([]string{"status told"}, all[:6]...), passed: true, unsaid: true},
		"what is not so is carried out no further": {change: func(d *lifecycle.Decision) {
			d.Delete[0].If = lifecycle.Unbound
		}, no: map[string]bool{"train-9": true}, want: []string{"ask Unbound(train-9)"}, passed: true},
		"pods stay": {at: "delete", err: errAway, want: all[:1]},
		"a pod that may not go": {at: "delete", err: errors.Join(nil, errors.Join(errQuota)), want: all,
			unended: errQuota.Error()},
		"a pod that gets no rank": {change: func(d *lifecycle.Decision) {
			d.Replace, d.Adopt = nil, []lifecycle.Adoption{{Pod: podOf("0")}}
		}, at: "adopt", err: errors.Join(errQuota), want: append([]string{"delete train-9:own", "adopt train-0"}, all[3:]...),
			problem: "the API server refuses the labels by which the group's pods get their ranks: " + errQuota.Error()},
		"no replacement for now": {at: "create train-0", err: errAway, want: all[:4]},
		"a replacement that is refused": {at: "create train-0", err: errQuota,
			want:    append(append([]string{}, all[:4]...), "status told"),
			problem: "the API server rejects the Run's pods: pods \"train-0\" is forbidden: exceeded quota"},
		"a Lease stays open": {at: "close", err: errAway, want: all[:4]},
		"no Service": {at: "service", err: NameTaken{"Service", "train"},
			want: append(append([]string{}, all[:5]...), "status told"), problem: NameTaken{"Service", "train"}.Error()},
		"no pod":    {at: "create train-1", err: errAway, want: all},
		"no status": {at: "status", err: errAway, want: all},
	} {
		t.Run(name, func(t *testing.T) {
			api := &recorder{fails: map[string]error{c.at: c.err}, no: c.no}
			runs, _ := deciding(t, api)
			d := everything()
			if c.change != nil {
				c.change(&d)
			}
			out, err := runs.CarryOut(t.Context(), observed(), d)
			if diff := cmp.Diff(c.want, api.calls); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if passed := err == nil; passed != c.passed || out.After != time.Minute || out.Retry != time.Second {
				t.Errorf("%v, to be looked at again after %s, and planned again after %s", err, out.After, out.Retry)
			}
			if unsaid := out.Unsaid != nil; unsaid != c.unsaid {
				t.Errorf("unsaid: %v", out.Unsaid)
			}
			if got := runs.problemOf(train); got != c.problem {
				t.Errorf("remembered: %q, want %q", got, c.problem)
			}
			o := observed()
			if got := runs.heldAgainst(&o).unended.text; got != c.unended {
				t.Errorf("remembered of what is to go: %q, want %q", got, c.unended)
			}
		})
	}
}

// TestAPodThatGetsNoRankHoldsUpNoEnd: whoever may edit a pod can see to it that no label fits into it. The Leases of
// other ranks close; that of the rank which it was to get tells of the loss until another gets it.
func TestAPodThatGetsNoRankHoldsUpNoEnd(t *testing.T) {
	for at, left := range map[string][]string{
		"adopt": {"release train-8", "adopt train-0"}, "release": {"release train-8"},
	} {
		for _, err := range []error{errQuota, errAway, apierrors.NewRequestEntityTooLargeError("train-0")} {
			api := &recorder{fails: map[string]error{at: err}}
			runs, _ := deciding(t, api)
			o := observed()
			o.Pods = append(o.Pods, podOf("0"))
			_, got := runs.CarryOut(t.Context(), o, lifecycle.Decision{
				Adopt: []lifecycle.Adoption{{Pod: podOf("0"), Labels: map[string]string{rqv1.LabelIndex: "0"}}},
				Close: []lifecycle.Closing{closing("0"), closing("1")}, Release: []*corev1.Pod{podOf("8")},
				Status: &rqv1.RunStatus{Message: "told"}})
			want := append(append([]string{}, left...), "close train-1:Completed@0s", "status told")
			if diff := cmp.Diff(want, api.calls); diff != "" || !errors.Is(got, err) {
				t.Errorf("%s: %v (-want +got):\n%s", at, got, diff)
			}
		}
	}
}

// TestALostRankWithoutAReplacementKeepsItsLease, which alone tells of the loss; those of others close.
func TestALostRankWithoutAReplacementKeepsItsLease(t *testing.T) {
	for _, at := range []string{"create train-0", "ranks"} {
		api := &recorder{fails: map[string]error{at: errAway}}
		runs, _ := deciding(t, api)
		d := everything()
		d.Close = append(d.Close, closing("0"))
		_, err := runs.CarryOut(t.Context(), observed(), d)
		if last := api.calls[len(api.calls)-1]; last != "close train-1:Completed@0s" || !errors.Is(err, errAway) {
			t.Errorf("%s: %v, %v", at, err, api.calls)
		}
	}
}

// TestEvidence has pods deleted of which the API server confirms some.
func TestEvidence(t *testing.T) {
	lost := func(rank, node string) lifecycle.Deletion {
		return lifecycle.Deletion{Pod: podOf(rank), If: lifecycle.NodeLost, Node: node}
	}
	ofGone := func(rank string, uid types.UID) lifecycle.Deletion {
		return lifecycle.Deletion{Pod: podOf(rank), If: lifecycle.RunGone, Run: uid}
	}
	notice := &lifecycle.Notice{GraceSeconds: 30}
	for name, c := range map[string]struct {
		deletions []lifecycle.Deletion
		no        map[string]bool
		err       error
		want      []string
	}{
		"nothing": {},
		"by decision": {deletions: []lifecycle.Deletion{{Pod: podOf("0")}, {Pod: podOf("1"), GraceSeconds: new(int64)},
			{Pod: podOf("2"), Notice: notice}},
			want: []string{"delete train-0:own train-1:0 train-2:30"}},
		"each node is asked for once": {deletions: []lifecycle.Deletion{lost("0", "a"), lost("1", "a"), lost("2", "b")},
			want: []string{"ask NodeLost(a) NodeLost(b)", "delete train-0:0 train-1:0 train-2:0"}},
		"one stands": {deletions: []lifecycle.Deletion{lost("0", "a"), lost("1", "b")}, no: map[string]bool{"a": true},
			want: []string{"ask NodeLost(a) NodeLost(b)", "delete train-1:0"}},
		"all stand": {deletions: []lifecycle.Deletion{lost("0", "a")}, no: map[string]bool{"a": true},
			want: []string{"ask NodeLost(a)"}},
		"of Runs that are gone": {deletions: []lifecycle.Deletion{ofGone("0", "x"), ofGone("1", "x"), ofGone("2", "y")},
			no:   map[string]bool{"y": true},
			want: []string{"ask RunGone(x) RunGone(y)", "delete train-0:own train-1:own"}},
		"unpaid": {deletions: []lifecycle.Deletion{{Pod: podOf("0"), If: lifecycle.Unpaid}},
			want: []string{"ask Unpaid(" + leaseName("0") + ")", "delete train-0:own"}},
		"what is not found out holds up no others": {deletions: []lifecycle.Deletion{lost("0", "a"), {Pod: podOf("1")}},
			no: map[string]bool{"a": true}, err: errAway,
			want: []string{"ask NodeLost(a)", "delete train-1:own"}},
	} {
		api := &recorder{no: c.no, fails: map[string]error{"ask": c.err}}
		_, err := New(nil, api, lifecycle.Rules{}, nil).deletePods(t.Context(), c.deletions)
		if diff := cmp.Diff(c.want, api.calls); diff != "" || !errors.Is(err, c.err) {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func leaseName(rank string) string {
	return questionOf(&lifecycle.Deletion{Pod: podOf(rank), If: lifecycle.Unpaid}).Lease.Name
}

// TestARunMayHaveHadPods has a pod made of a Run: it is the rank's first if the Run has had no Lease, whatever it has
// said.
func TestARunMayHaveHadPods(t *testing.T) {
	first, later := []string{"service train", "create train-1"}, []string{"service train", "ranks 1", "create train-1"}
	for name, c := range map[string]struct {
		had        bool
		conditions []metav1.Condition
		want       []string
	}{
		"a new one":               {want: first},
		"one that had a Lease":    {had: true, want: later},
		"one that said something": {conditions: []metav1.Condition{{Type: rqv1.ConditionStarted}}, want: first},
	} {
		api, o, d := &recorder{}, observed(), everything()
		o.Run.Status.Conditions, o.HadLease = c.conditions, c.had
		if _, err := New(nil, api, lifecycle.Rules{}, nil).CarryOut(t.Context(), o,
			lifecycle.Decision{Service: d.Service, Create: d.Create}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, api.calls); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
