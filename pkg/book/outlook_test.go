package book_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
)

// One namespace cannot keep the others from forecasts by editing its suspended Runs all the time, and who only asks
// does not wait for the Runs of its namespace.
func TestNamespacesTakeTurnsWithForecasts(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 16)
		held := func(namespace, name string, changes ...func(*rqv1.Run)) *rqv1.Run {
			run := &rqv1.Run{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name),
					Generation: 1, CreationTimestamp: metav1.NewTime(s.Now)},
				Spec: rqv1.RunSpec{Owner: "org:a", Suspend: true,
					Resources: rqv1.RunResources{GPUType: flavor, TotalGPUs: 8}},
				Status: rqv1.RunStatus{Phase: rqv1.RunPending},
			}
			for _, change := range changes {
				change(run)
			}
			s.Book.SetRun(run)
			return run
		}
		asks := func(run *rqv1.Run) {
			run.Name, run.UID = rqv1.WhatIfPrefix+run.Name, types.UID(run.Namespace+rqv1.WhatIfPrefix+run.Name)
			run.Labels, run.Spec.TTLSecondsAfterFinished = map[string]string{rqv1.LabelWhatIf: "true"}, new(int32)
		}
		var busy []*rqv1.Run
		for i := range 20 {
			busy = append(busy, held("busy", fmt.Sprintf("r%02d", i)))
		}
		s.Pass(time.Second)
		answered := func(run *rqv1.Run) bool {
			look, _ := s.Book.Look(book.Objects{Run: run,
				Name: types.NamespacedName{Namespace: run.Namespace, Name: run.Name}})
			return look.Outlook != nil
		}
		turn := func() {
			s.Book.WorkOutNext(s.Now, 0)
			for i := range busy {
				busy[i] = busy[i].DeepCopy()
				busy[i].Generation++
				s.Book.SetRun(busy[i])
			}
			s.Pass(time.Second)
		}
		turn()
		quiet, question := held("quiet", "one"), held("busy", "one", asks)
		turn()
		if !answered(quiet) {
			s.t.Error("a namespace waits for the forecasts of another one's twenty Runs")
		}
		turn()
		if !answered(question) {
			s.t.Error("who asks waits for the forecasts of suspended Runs")
		}
	})
}
