package book_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// fullPool has some Runs wait which may use one node alone, that is full, as another is; who is younger may use both.
func (w *world) fullPool(runs int, change func(*rqv1.RunSpec)) {
	w.Book.DrawsBy("None")
	w.addNode("full", "d0")
	w.addNode("other", "d0")
	w.setBudget("a", "org:a", 6400)
	w.submitWithSpares("run00", "org:a", 1, 1, 8, 0, change)
	w.submitWithSpares("run01", "org:a", 1, 1, 8, 0)
	w.rounds(2)
	w.running("run01", "on a fleet that is free")
	for i := range runs {
		w.submitWithSpares(fmt.Sprintf("run1%03d", i), "org:a", 1, 1, 8, 0, change)
	}
	w.rounds(2)
	w.submitWithSpares("run2", "org:a", 1, 1, 8, 0)
	w.rounds(2)
}

// planned asserts that what something has happen takes no more than so many plans.
func (w *world) planned(most int64, what string, happens func()) {
	before := w.Book.Plans()
	happens()
	if plans := w.Book.Plans() - before; plans > most {
		w.t.Fatalf("%d plans, not %d, when %s", plans, most, what)
	}
}

// endsFor has the first pod of a Run succeed, and another be given what it leaves.
func (w *world) endsFor(run, other string) func() {
	return func() {
		w.EndPod(w.pod(run+"-0"), corev1.PodSucceeded)
		w.rounds(3)
		w.running(other, "although it may use what is free")
	}
}

// Runs that may use a full pool alone are not planned when GPUs come free elsewhere, before those that may use these.
func TestRunsOfAFullPoolDoNotStandBeforeOthers(t *testing.T) {
	for what, say := range map[string]func(*corev1.PodSpec){
		"a node selector": func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{corev1.LabelHostname: "full"} },
		"node affinity": func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{
						{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"full"}}}}}}}}
		},
	} {
		t.Run(what, func(t *testing.T) {
			tell(t, func(w *world) {
				w.fullPool(100, func(s *rqv1.RunSpec) {
					s.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
						Containers: []corev1.Container{{Name: "main", Image: "main"}}}}
					say(&s.Template.Spec)
				})
				w.planned(3, "GPUs come free elsewhere", w.endsFor("run01", "run2"))
				w.planned(4, "those of the pool do", w.endsFor("run00", "run1000"))
			})
		})
	}
}

// Nor are those that other nodes have too little CPU for, once that is known of them.
func TestRunsThatLackCPUDoNotStandBeforeOthers(t *testing.T) {
	tell(t, func(w *world) {
		w.fullPool(10, withCPU("12", 0))
		w.bystander("eater", "other", "8", 0)
		w.EndPod(w.pod("run01-0"), corev1.PodSucceeded)
		w.rounds(12)
		w.running("run2", "although it may use what is free")
		w.submitWithSpares("run3", "org:a", 1, 1, 8, 0)
		w.rounds(2)
		w.planned(3, "GPUs come free beside too little CPU", w.endsFor("run2", "run3"))
		w.DropBystander("eater")
		w.endsFor("run3", "run1000")()
	})
}

// Who tolerates a taint is tried on its nodes whoever waits before and does not, whatever the taint's effect.
func TestWhoToleratesATaintIsNoneOfThoseWhoDoNot(t *testing.T) {
	for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute} {
		t.Run(string(effect), func(t *testing.T) {
			tell(t, func(w *world) {
				tolerates := func(s *rqv1.RunSpec) {
					s.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
						Containers: []corev1.Container{{Name: "main", Image: "main"}},
						Tolerations: []corev1.Toleration{
							{Key: "dedicated", Operator: corev1.TolerationOpExists, Effect: effect}}}}
				}
				w.Book.DrawsBy("None")
				w.addNode("tainted", "d0")
				node := w.Nodes["tainted"].DeepCopy()
				node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: "dedicated", Effect: effect})
				w.SetNode(node)
				w.setBudget("a", "org:a", 6400)
				w.submitWithSpares("run00", "org:a", 1, 1, 8, 0, tolerates)
				w.rounds(2)
				w.running("run00", "although it tolerates the taint")
				for i := range 3 {
					w.submitWithSpares(fmt.Sprintf("run1%d", i), "org:a", 1, 1, 8, 0)
				}
				w.rounds(2)
				w.submitWithSpares("run2", "org:a", 1, 1, 8, 0, tolerates)
				w.rounds(2)
				w.EndPod(w.pod("run00-0"), corev1.PodSucceeded)
				w.rounds(3)
				w.running("run2", "although it tolerates the taint")
			})
		})
	}
}

// BenchmarkFullPool is what an end costs beside 1,000 Runs that may use some full pools alone: GPUs come free
// elsewhere, where 3,000 nodes are free. It is done under the lock, wakes none of them, and is to take less than 20 ms.
func BenchmarkFullPool(b *testing.B) {
	for _, pools := range []int{1, 20, 64} {
		b.Run(fmt.Sprintf("waiting=1000/pools=%d", pools), func(b *testing.B) {
			f := newFleetOf(b)
			f.leads = true
			f.fill(func(int, []*corev1.Pod) {})
			for i := range 1000 {
				f.selects = map[string]string{"pool": fmt.Sprint(i % pools)}
				f.book.Place(f.run(2000+i, 1, nil)[0].UID, f.now)
			}
			f.book.KnowNodes()
			longest, held, n := f.holds(), time.Duration(0), 0
			for b.Loop() {
				if woken := f.book.WakeRoom(flavor); woken > 0 {
					b.Fatalf("%d Runs are woken that may not use what is free", woken)
				}
				held += longest()
				n++
			}
			b.ReportMetric(float64(held.Microseconds())/float64(n), "held-µs/op")
		})
	}
}

// BenchmarkFullPoolWhileNodesChange is what an edit of a node costs beside them: what others say to the pods stands.
func BenchmarkFullPoolWhileNodesChange(b *testing.B) {
	f := newFleetOf(b)
	f.leads = true
	f.fill(func(int, []*corev1.Pod) {})
	for i := range 1000 {
		f.selects = map[string]string{"pool": fmt.Sprint(i % 64)}
		f.book.Place(f.run(2000+i, 1, nil)[0].UID, f.now)
	}
	f.book.KnowNodes()
	longest, held, n := f.holds(), time.Duration(0), 0
	for b.Loop() {
		node := f.node(n, 8)
		node.Labels["edited"] = fmt.Sprint(n)
		f.book.SetNode(node)
		held += longest()
		n++
	}
	b.ReportMetric(float64(held.Microseconds())/float64(n), "held-µs/op")
}
