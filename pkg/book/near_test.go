package book_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// turnedDown has the test fail when a pod is turned down from where it was placed: a plan is to know better.
func (w *world) turnedDown(pod *corev1.Pod, node string) {
	w.t.Fatalf("%s was placed on %s and turned down", pod.Name, node)
}

// nodesOf returns the nodes of a Run's pods, sorted.
func (w *world) nodesOf(run string) []string {
	var out []string
	for _, pod := range w.PodsOf(run) {
		out = append(out, pod.Spec.NodeName)
	}
	slices.Sort(out)
	return out
}

// Nodes that have the GPUs and too little beside them are passed over, as many of them as there are, in one plan.
func TestPlansKnowWhatNodesHaveBeside(t *testing.T) {
	for name, c := range map[string]struct {
		gpus, pods int
		change     func(*rqv1.RunSpec)
		bystanders map[string]string // CPUs that are taken, by node
		port       int32             // of the bystanders
		want       []string
	}{
		"no CPU on the first two": {8, 1, withCPU("6", 0), map[string]string{"n0": "12", "n1": "12"}, 0,
			[]string{"n2"}},
		"one pod on what two would use": {4, 2, withCPU("8", 0), map[string]string{"n0": "4", "n1": "16", "n2": "4"}, 0,
			[]string{"n0", "n2"}},
		"a port that is taken": {8, 1, withCPU("1", 8080), map[string]string{"n0": "1", "n2": "1"}, 8080,
			[]string{"n1"}},
		"a port of each":             {2, 3, withCPU("1", 9090), nil, 0, []string{"n0", "n1", "n2"}},
		"and where there is no need": {4, 2, withCPU("8", 0), nil, 0, []string{"n0", "n0"}},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.Cluster.Rejected = w.turnedDown
				for _, node := range []string{"n0", "n1", "n2"} {
					w.addNode(node, "d0")
				}
				w.setBudget("a", "org:a", 64)
				for node, cpu := range c.bystanders {
					w.bystander("daemon-"+node, node, cpu, c.port)
				}
				w.submitWithSpares("run0", "org:a", 1, c.pods, c.gpus, 0, c.change)
				w.settle()
				w.running("run0", "although nodes accept it")
				if got := w.nodesOf("run0"); !slices.Equal(got, c.want) {
					w.t.Fatalf("it runs on %v, want %v", got, c.want)
				}
			})
		})
	}
}

// A Run that no free node accepts is told which rule stands in its way, is not tried again until that changes, and
// starts then.
func TestARunWaitsForCPU(t *testing.T) {
	tell(t, func(w *world) {
		w.Cluster.Rejected = w.turnedDown
		w.fleet("d0", 2)
		w.setBudget("a", "org:a", 64)
		w.bystander("daemon0", "d0-n00", "12", 0)
		w.bystander("daemon1", "d0-n01", "12", 0)
		w.submitWithSpares("run0", "org:a", 1, 1, 8, 0, withCPU("6", 0))
		w.settle()
		r := w.Book.Refusal(w.Runs["run0"].UID)
		if r == nil || r.Reason != plan.NodesRejected || r.Passes() ||
			*r.Rejected != (plan.Rejection{Nodes: 2, Node: "d0-n00", Rule: "Insufficient cpu", Known: true}) {
			w.t.Fatalf("it is refused for %+v", r)
		}
		w.DropBystander("daemon1")
		w.settle()
		w.running("run0", "although a node has CPU")
	})
}

// standoff has one Run hold the only GPUs, with CPUs of its own, and another wait that asks for CPUs.
func (s *storm) standoff(held, asked string) {
	s.Cluster.Rejected = s.turnedDown
	s.fleet("d0", 1)
	s.setBudget("a", "org:a", 64)
	s.setBudget("b", "org:b", 64)
	s.submitWithSpares("holder", "org:a", 1, 1, 8, 0, withCPU(held, 0), checkpointed)
	s.work()
	s.running("holder", "although it is alone")
	s.during(time.Minute)
	s.submitWithSpares("wants", "org:b", 1, 1, 8, 0, withCPU(asked, 0))
}

// Nobody is cut for a Run that could not run there either, and it is told why; once it could, the cut comes.
func TestNobodyIsCutForARunThatLacksCPU(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.standoff("2", "12")
		s.bystander("daemon", "d0-n00", "10", 0)
		s.work()
		for range 5 {
			s.during(reservationLead)
			s.work()
		}
		s.running("holder", "although nothing is won by cutting it")
		r := s.Book.Refusal(s.Runs["wants"].UID)
		if len(s.Reservations) > 0 || r == nil || r.Rejected == nil || r.Rejected.Node != "d0-n00" ||
			r.Rejected.Rule != "Insufficient cpu" || !strings.Contains(r.Message, "no Run is cut for it") {
			s.t.Fatalf("it has %d Reservations, and is refused for %+v", len(s.Reservations), r)
		}
		s.DropBystander("daemon")
		for range 3 {
			s.work()
			s.during(noticePeriod)
		}
		s.running("wants", "although it could have started by a cut")
	})
}

// What those who are cut hold beside their GPUs is the starter's.
func TestACutFreesCPU(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.standoff("12", "16")
		s.work()
		s.due()
		for range 3 {
			s.work()
			s.during(noticePeriod)
		}
		s.running("wants", "although the other holds the CPU that it needs")
	})
}

// Of two full domains that would do by their GPUs, those are cut that are where the starter's pods are accepted.
func TestCutsComeWhereThePodsAreAccepted(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.Cluster.Rejected = s.turnedDown
		s.fleet("d0", 1)
		s.fleet("d1", 1)
		s.setBudget("a", "org:a", 64)
		s.setBudget("b", "org:b", 64)
		s.submitWithSpares("holder0", "org:a", 1, 1, 8, 0, checkpointed)
		s.submitWithSpares("holder1", "org:a", 1, 1, 8, 0, checkpointed)
		s.work()
		s.bystander("daemon", "d0-n00", "12", 0)
		s.during(time.Minute)
		s.submitWithSpares("wants", "org:b", 1, 1, 8, 0, withCPU("8", 0))
		s.work()
		s.due()
		for range 3 {
			s.work()
			s.during(noticePeriod)
		}
		s.running("wants", "although the Run in d1 could be cut")
		if got := s.nodesOf("wants"); !slices.Equal(got, []string{"d1-n00"}) {
			s.t.Fatalf("it runs on %v", got)
		}
	})
}

// A rank that is lost goes to a node that accepts it although another has GPUs, and not to its spare where somebody
// else has taken what the spare held.
func TestALostRankGoesWhereItIsAccepted(t *testing.T) {
	tell(t, func(w *world) {
		w.Cluster.Rejected = w.turnedDown
		w.guarded(5, 2, 1, withCPU("12", 0))
		free, spare := w.idleNodes(), w.on("run0-s0")
		slices.Sort(free)
		w.bystander("daemon0", free[0], "8", 0)
		w.bystander("daemon1", spare, "8", 0)
		w.RemoveNode(w.on("run0-0"))
		w.settle()
		w.running("run0", "although a node accepts the rank")
		if on := w.on("run0-0"); on != free[1] {
			w.t.Fatalf("the rank is on %s, want %s", on, free[1])
		}
	})
}

// A Run grows onto nodes that accept its pods.
func TestGrowthGoesWhereItIsAccepted(t *testing.T) {
	tell(t, func(w *world) {
		w.Cluster.Rejected = w.turnedDown
		w.fleet("d0", 4)
		w.setBudget("a", "org:a", 64)
		w.bystander("daemon", "d0-n01", "8", 0)
		w.submitWithSpares("run0", "org:a", 1, 1, 8, 0, ungrouped, elastic(1, 1), upTo(3), withCPU("12", 0))
		for range 10 {
			w.settle()
			w.grow()
		}
		want := []string{"d0-n00", "d0-n02", "d0-n03"}
		if got := w.nodesOf("run0"); !slices.Equal(got, want) {
			w.t.Fatalf("it runs on %v, want %v", got, want)
		}
	})
}

// Shards that hold what a Run needs beside GPUs give way, though they leave GPUs enough.
func TestShardsGiveWayForCPU(t *testing.T) {
	tell(t, func(w *world) {
		w.Cluster.Rejected = w.turnedDown
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("shards", "org:a", 2, 1, 2, 0, ungrouped, opportunistic, withCPU("7", 0))
		for range 5 {
			w.settle()
			w.Book.Fill(w.Now)
		}
		if got := len(w.OpenLeases()); got != 2 {
			w.t.Fatalf("%d shards run", got)
		}
		w.submitWithSpares("run0", "org:a", 1, 1, 4, 0, withCPU("8", 0))
		w.settle()
		w.running("run0", "although shards give way")
	})
}
