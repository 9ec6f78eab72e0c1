package book_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// everybodyAway is a rule that no pod of any namespace is to run in the same domain.
var everybodyAway = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
	RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "fabric.domain",
		LabelSelector: &metav1.LabelSelector{}, NamespaceSelector: &metav1.LabelSelector{}}}}}

// With one GPU nobody closes a domain to all others: pods that require that are not started, and their Runs are told;
// those that others have made are where the configuration allows it.
func TestNobodyKeepsOtherNamespacesAway(t *testing.T) {
	for name, c := range map[string]struct {
		theirs bool
		says   string
		starts bool
	}{
		"a Run's pods":              {says: config.AntiAffinityAllow},
		"pods of others":            {theirs: true, says: config.AntiAffinityRefuse},
		"pods of others, if may be": {theirs: true, says: config.AntiAffinityAllow, starts: true},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.Args.ForeignAntiAffinity = c.says
				w.crash()
				w.addNode("n0", "d0")
				w.setBudget("a", "org:a", 8)
				w.controllers.affinity = everybodyAway
				w.submitWithSpares("run00", "org:a", 1, 1, 1, 0, ungrouped, func(s *rqv1.RunSpec) {
					if c.theirs {
						theirs(s)
						return
					}
					s.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Affinity: everybodyAway,
						Containers: []corev1.Container{{Name: "main", Image: "x"}}}}
				})
				w.rounds(3)
				if c.starts {
					w.running("run00", "although the configuration allows it")
					return
				}
				if run := w.Runs["run00"]; w.heldGPUs() != 0 ||
					!strings.Contains(run.Status.Message, "requires pods of other namespaces to keep away") {
					w.t.Fatalf("%d GPUs are held, and it says %q", w.heldGPUs(), run.Status.Message)
				}
			})
		})
	}
}

// What runs since before such rules were refused goes on as it is: who is made in the place of a lost pod says what the
// others say, and is let in. Nobody gets in by that who says so as the first of a group.
func TestALostRankIsReplacedThoughItKeepsOthersAway(t *testing.T) {
	for name, c := range map[string]struct{ theirs, all, alone, starts bool }{
		"of a Run":                            {all: true, starts: true},
		"of a group of others":                {theirs: true, all: true, starts: true},
		"of a group whose others say no such": {theirs: true},
		"of a group of one":                   {theirs: true, all: true, alone: true, starts: true},
		"of a group of one that said no such": {theirs: true, alone: true},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.fleet("d0", 3)
				w.setBudget("a", "org:a", 64)
				pods := 2
				if c.alone {
					pods = 1
				}
				if c.theirs {
					w.submitWithSpares("run00", "org:a", 1, pods, 8, 0, ungrouped, theirs)
				} else {
					w.submit("run00", "org:a", 1, 2, 8)
				}
				w.rounds(3)
				w.running("run00", "although its pods are there")
				keepAway := func(pod *corev1.Pod, is bool) {
					if is {
						pod.Spec.Affinity = everybodyAway
					}
				}
				for _, pod := range w.Pods {
					keepAway(pod, c.all)
				}
				w.crash()
				w.Admits = func(pod *corev1.Pod) { keepAway(pod, true) }
				if c.theirs {
					w.controllers.affinity = everybodyAway
					w.DeletePod(w.Slots(w.Runs["run00"].UID)[pods-1][0].UID)
				} else {
					w.Lose(w.on("run00-1"))
				}
				for range 5 {
					w.rounds(1)
					w.Pass(time.Second)
				}
				bound := 0
				for _, pod := range w.Pods {
					if pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && !rank.Ended(pod) {
						bound++
					}
				}
				if (bound == pods) != c.starts {
					w.t.Fatalf("%d of its pods are bound: %s", bound, w.describe("run00"))
				}
			})
		})
	}
}
