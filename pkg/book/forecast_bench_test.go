package book_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// fleetOf is a book with 5,000 nodes in 40 domains, full of Runs of two or three nodes, some elastic, some with spares,
// some that end, and others that wait.
type fleetOf struct {
	tb    testing.TB
	book  *book.Book
	now   time.Time
	nodes int
	// leads says that of Runs that wait the leader is there alone, and selects which nodes their pods select.
	leads   bool
	selects map[string]string
	// kinds is of how many kinds the pods of a Run are, which others make then; 0 where a Run makes its own.
	kinds int
}

const (
	benchDomains = 40
	benchNodes   = 125 // of a domain
)

func newFleetOf(tb testing.TB) *fleetOf {
	args, err := config.Parse(nil)
	if err != nil {
		tb.Fatal(err)
	}
	f := &fleetOf{tb: tb, book: book.New(args), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	f.book.SetLotteryKey(make([]byte, 32))
	for d := range benchDomains {
		for n := range benchNodes {
			f.book.SetNode(f.node(d*benchNodes+n, 8))
		}
	}
	for o := range 50 {
		f.book.Budgets.SetBudget(f.budgetOf(o))
	}
	f.book.Begin(f.now)
	return f
}

// node is one of the nodes, with so many GPUs.
func (f *fleetOf) node(i, gpus int) *corev1.Node {
	d := i / benchNodes
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: map[string]string{
			"region": fmt.Sprintf("r%d", d%4), "cluster": fmt.Sprintf("c%d", d%8), "fabric.domain": fmt.Sprintf("d%02d", d),
			"gpu.flavor": flavor}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(gpus), resource.DecimalSI)}},
	}
}

// budgetOf is the Budget of one of the owners, which pays for all that there is.
func (f *fleetOf) budgetOf(owner int) *rqv1.Budget {
	return &rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("b%d", owner),
		UID: types.UID(fmt.Sprintf("b%d", owner))}, Spec: rqv1.BudgetSpec{
		Owner:     rqv1.Owner(fmt.Sprintf("org:t%d", owner)),
		Envelopes: []rqv1.Envelope{{Name: "e", Flavor: flavor, Concurrency: 100000}}}}
}

func nodeName(i int) string { return fmt.Sprintf("n%04d", i) }

// run adds a Run of some nodes; it runs on those given, or waits.
func (f *fleetOf) run(i, pods int, on []int) []*corev1.Pod {
	name := fmt.Sprintf("run%04d", i)
	run := &rqv1.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), Generation: 1,
			CreationTimestamp: metav1.NewTime(f.now.Add(time.Duration(i) * time.Second))},
		Spec: rqv1.RunSpec{Owner: rqv1.Owner(fmt.Sprintf("org:t%d", i%50)),
			Resources: rqv1.RunResources{GPUType: flavor, TotalGPUs: int32(8 * pods)}},
		Status: rqv1.RunStatus{Phase: rqv1.RunPending},
	}
	if on != nil {
		started := metav1.Condition{Type: rqv1.ConditionStarted, Status: metav1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(f.now.Add(-time.Hour))}
		run.Status = rqv1.RunStatus{Phase: rqv1.RunRunning, Conditions: []metav1.Condition{started},
			Width: &rqv1.RunWidth{Granted: int32(8 * pods)}}
		switch {
		case i%5 == 0:
			run.Spec.Malleable = &rqv1.RunMalleable{MinTotalGPUs: 8, MaxTotalGPUs: int32(8 * (pods + 8)), StepGPUs: 8}
		case i%3 == 0:
			run.Spec.Runtime = &rqv1.RunRuntime{
				MaxDuration: &metav1.Duration{Duration: time.Hour + time.Duration(i)*time.Second}}
		}
	}
	if size := int32(8); f.kinds > 0 {
		theirs(&run.Spec)
		run.Spec.Resources.GPUsPerPod = &size
	}
	f.book.SetRun(run)
	var out []*corev1.Pod
	for p := range pods {
		if f.leads && p > 0 {
			break
		}
		part := rank.Part{Index: p}
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: part.PodName(name),
				UID: types.UID(fmt.Sprintf("%04d%04d", i, p)), CreationTimestamp: run.CreationTimestamp,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(run, rqv1.GroupVersion.WithKind("Run"))},
				Labels: map[string]string{rqv1.LabelRun: name, rqv1.LabelIndex: fmt.Sprint(p), rqv1.LabelGroupIndex: "0",
					rqv1.LabelRole: "Active", rqv1.LabelCohort: "0"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(8, resource.DecimalSI)}}}}},
		}
		pod.Spec.NodeSelector = f.selects
		if f.kinds > 0 {
			pod.Spec.Tolerations = []corev1.Toleration{{Key: fmt.Sprint("kind", p%f.kinds), Operator: corev1.TolerationOpExists}}
		}
		if on != nil {
			pod.Spec.NodeName = nodeName(on[p])
			f.book.SetPod(pod)
			f.book.SetLease(&rqv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: rank.LeaseName(pod.Name, pod.UID),
					Labels: map[string]string{rqv1.LabelPodUID: string(pod.UID)}},
				Spec: rqv1.LeaseSpec{Owner: run.Spec.Owner, RunRef: rqv1.LeaseRunRef{Namespace: "ns", Name: name, UID: run.UID},
					PaidByEnvelope: "e",
					Payer:          rqv1.LeasePayer{Budget: fmt.Sprintf("b%d", i%50), Owner: run.Spec.Owner},
					Start:          metav1.NewMicroTime(f.now.Add(-time.Hour)),
					Slice: rqv1.LeaseSlice{Role: rqv1.RoleActive,
						Nodes: []rqv1.NodeGPUs{{Name: pod.Spec.NodeName, GPUs: 8}}}},
			})
		}
		f.book.SetMember(pod)
		out = append(out, pod)
	}
	return out
}

// fill has 2,000 Runs of two or three nodes each take the fleet, and tells of the pods of each.
func (f *fleetOf) fill(tell func(i int, pods []*corev1.Pod)) {
	next := 0
	for i := range 2000 {
		on := make([]int, 2+i%2)
		for p := range on {
			on[p] = next
			next++
		}
		tell(i, f.run(i, len(on), on))
	}
}

// refuse has a waiting Run's leader be planned, which fails, and its promise worked out.
func (f *fleetOf) refuse(pods []*corev1.Pod) {
	if _, refusal := f.book.Place(pods[0].UID, f.now); refusal == nil {
		f.tb.Fatal("a Run fits a full fleet")
	}
	f.book.Turn(pods[0].UID, f.now)
}

// holds measures for how long the book is held, and returns what tells the longest since it was last asked.
func (f *fleetOf) holds() func() time.Duration {
	var longest time.Duration
	f.book.WatchHolds(func() func() {
		begin := time.Now()
		return func() { longest = max(longest, time.Since(begin)) }
	})
	return func() time.Duration {
		was := longest
		longest = 0
		return was
	}
}

// BenchmarkForecast works out when one Run among 1,000 that wait starts, on 5,000 nodes with 2,000 Runs, with the odds
// of those in its way, and for how long the book is held meanwhile at the longest, which is to be less than 20 ms on
// the average; and what would happen if another were submitted.
func BenchmarkForecast(b *testing.B) {
	f := newFleetOf(b)
	f.fill(func(int, []*corev1.Pod) {})
	for i := range 1000 {
		f.refuse(f.run(2000+i, 4+i%29, nil))
	}
	for _, gpus := range []int{32, 256, 1024, 4096} {
		pods := f.run(-50*gpus, gpus/8, nil) // the oldest: one that is further back gets no date
		b.Run(fmt.Sprintf("waiting=1000/gpus=%d", gpus), func(b *testing.B) {
			b.ReportAllocs()
			longest, held := f.holds(), time.Duration(0)
			for b.Loop() {
				f.refuse(pods)
				held += longest()
			}
			if f.book.Prospect(types.UID("uid-"+pods[0].Labels[rqv1.LabelRun])).Promise == nil {
				b.Fatal("it has no date")
			}
			b.ReportMetric(float64(held.Microseconds())/1000/float64(b.N), "ms-held")
		})
		run := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "new", UID: "new",
			CreationTimestamp: metav1.NewTime(f.now.Add(-time.Hour))}, // one that is further back gets no date
			Spec: rqv1.RunSpec{Owner: "org:t1", Resources: rqv1.RunResources{GPUType: flavor, TotalGPUs: int32(gpus)}}}
		b.Run(fmt.Sprintf("plan/gpus=%d", gpus), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if o := f.book.WhatIf(run, f.now); o.Refusal == nil || o.Promise == nil {
					b.Fatalf("%+v", o.Refusal)
				}
			}
		})
	}
}

// BenchmarkGrow is one pass over 1,000 Runs, 200 of which would like to grow, on 5,000 nodes half of which are free.
func BenchmarkGrow(b *testing.B) {
	f := newFleetOf(b)
	for i := range 1000 {
		f.run(i, 2, []int{2 * i, 2*i + 1})
	}
	b.ReportAllocs()
	for b.Loop() {
		f.book.GrowRuns(f.now)
	}
	if f.book.Prospect("uid-run0000").GrowTo != 24 {
		b.Fatal("the oldest Run is not let grow")
	}
}

// BenchmarkForecastAmidDepartures works out when one Run starts while the pods of half of 2,000 Runs have been told to
// go, each with a grace period of its own, and a tenth of them should be long gone.
func BenchmarkForecastAmidDepartures(b *testing.B) {
	f := newFleetOf(b)
	f.fill(func(i int, pods []*corev1.Pod) {
		for _, pod := range pods {
			if i%2 == 0 {
				grace := int64(30 + i)
				told := metav1.NewTime(f.now.Add(time.Duration(grace) * time.Second))
				if i%20 == 0 {
					told = metav1.NewTime(f.now.Add(-time.Hour))
				}
				pod = pod.DeepCopy()
				pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &told, &grace
				f.book.SetPod(pod)
				f.book.SetMember(pod)
			}
		}
	})
	for i := range 100 {
		f.refuse(f.run(2000+i, 4+i%29, nil))
	}
	pods := f.run(-50, 32, nil)
	b.ReportAllocs()
	for b.Loop() {
		f.refuse(pods)
	}
}
