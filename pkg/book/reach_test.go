package book_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// sharing has the pods of a Run share a claim, which is bound where the first of them goes.
func sharing(s *rqv1.RunSpec) {
	if s.Template == nil {
		s.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}
	}
	s.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
}

// zoned has volumes reach the nodes of one zone alone: those whose domains begin alike, so far.
func (w *world) zoned(letters int) {
	w.Zone = func(node string) string {
		if n := w.Nodes[node]; n != nil {
			domain := n.Labels["fabric.domain"]
			return domain[:min(letters, len(domain))]
		}
		return ""
	}
}

// zonedAny has volumes reach the nodes of one domain alone, or every other node, or all of them. Rules that nobody asks
// about what they say of a gang as a whole would have it planned in vain.
func (w *world) zonedAny(t *rapid.T) {
	if !w.Checks {
		return
	}
	switch rapid.SampledFrom([]string{"none", "pools", "domains"}).Draw(t, "zones") {
	case "pools":
		w.Zone = poolOf
	case "domains":
		w.zoned(len("d0"))
	}
}

// inZone asserts that all pods of a Run are in a zone.
func (w *world) inZone(run, zone string) {
	w.t.Helper()
	for _, node := range w.nodesOf(run) {
		if w.Zone(node) != zone {
			w.t.Fatalf("%s runs on %v, want all of it in %s", run, w.nodesOf(run), zone)
		}
	}
}

// A gang whose pods share a volume that is bound where the first of them goes starts where all of it finds room,
// although its first pod had rather been elsewhere.
func TestAGangStartsWhereItsVolumeReachesAllOfIt(t *testing.T) {
	for name, c := range map[string]struct {
		domains      []string // of one node each
		groups, gpus int
		in           string
	}{
		"the second zone does":                  {[]string{"a0", "b0", "b1"}, 3, 4, "b"},
		"the third zone does":                   {[]string{"a0", "b0", "c0", "c1"}, 3, 4, "c"},
		"groups in different domains of a zone": {[]string{"a0", "b0", "b1"}, 2, 8, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.Cluster.Rejected = w.turnedDown
				w.asks(true)
				for _, domain := range c.domains {
					w.fleet(domain, 1)
				}
				w.zoned(1)
				w.setBudget("a", "org:a", 64)
				w.submitWithSpares("run0", "org:a", c.groups, 1, c.gpus, 0, sharing)
				w.settle()
				w.running("run0", "although one zone takes it whole")
				w.inZone("run0", c.in)
			})
		})
	}
}

// A gang that no zone takes whole is told the rule and a node, is asked about less and less often, and starts when one
// has room.
func TestAGangThatNoVolumeReaches(t *testing.T) {
	tell(t, func(w *world) {
		w.Cluster.Rejected = w.turnedDown
		w.asks(true)
		w.fleet("a0", 1)
		w.fleet("b0", 1)
		w.zoned(1)
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run0", "org:a", 2, 1, 8, 0, sharing)
		for range 60 {
			w.round()
			w.Pass(time.Second)
		}
		r := w.Book.Refusal(w.Runs["run0"].UID)
		if r == nil || r.Rejected == nil || r.Rejected.Node != "b0-n00" || !strings.HasSuffix(r.Rejected.Rule, "to bind") {
			w.t.Fatalf("it is refused for %+v", r)
		}
		if w.Asked == 0 || w.Asked > 15 {
			w.t.Fatalf("rules were asked %d times within a minute", w.Asked)
		}
		w.addNode("b1-n00", "b1")
		w.settle()
		w.running("run0", "although b takes it whole")
		w.inZone("run0", "b")
	})
}

// A gang whose volume reaches but one node, of many, is not tried on all of them at once.
func TestAGangWhoseVolumeReachesOneNode(t *testing.T) {
	tell(t, func(w *world) {
		w.Cluster.Rejected = w.turnedDown
		w.asks(true)
		w.fleet("d0", 20)
		w.Zone = func(node string) string { return node }
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run0", "org:a", 1, 2, 8, 0, sharing)
		w.round()
		if r := w.Book.Refusal(w.Runs["run0"].UID); r == nil || r.Rejected == nil || w.Asked < 2 || w.Asked > 10 {
			w.t.Fatalf("rules were asked %d times, and it is refused for %+v", w.Asked, r)
		}
	})
}

// On a full fleet others are cut in one zone alone, whose volume reaches all of a gang, and nobody where none does.
func TestCutsForAGangThatSharesAVolume(t *testing.T) {
	for name, c := range map[string]struct {
		b  []string // domains of zone b
		in string
	}{"one zone does": {[]string{"b0", "b1"}, "b"}, "none does": {[]string{"b0"}, ""}} {
		t.Run(name, func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				s.asks(true)
				s.fleet("a0", 1)
				for _, domain := range c.b {
					s.fleet(domain, 1)
				}
				s.zoned(1)
				s.setBudget("a", "org:a", 64)
				s.setBudget("b", "org:b", 64)
				for _, name := range []string{"holder0", "holder1", "holder2"}[:len(c.b)+1] {
					s.submitWithSpares(name, "org:a", 1, 1, 8, 0, checkpointed)
				}
				s.work()
				s.during(time.Minute)
				s.submitWithSpares("wants", "org:b", 2, 1, 8, 0, sharing)
				s.work()
				s.due()
				for range 3 {
					s.work()
					s.during(noticePeriod)
				}
				cut := 0
				for name, run := range s.Runs {
					if strings.HasPrefix(name, "holder") && run.Status.Phase != rqv1.RunRunning {
						cut++
					}
				}
				if c.in == "" {
					r := s.Book.Refusal(s.Runs["wants"].UID)
					if cut > 0 || r == nil || r.Rejected == nil || !strings.Contains(r.Message, "no Run is cut for it") {
						s.t.Fatalf("%d Runs were cut, and it is refused for %+v", cut, r)
					}
					return
				}
				s.running("wants", "although cuts in b would do")
				s.inZone("wants", c.in)
				if cut != 2 {
					s.t.Fatalf("%d Runs were cut", cut)
				}
			})
		})
	}
}

// Nobody is cut where one zone has room for a gang whose pods share a volume, although its date has come.
func TestNobodyIsCutWhereAnotherZoneHasRoom(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.asks(true)
		for _, domain := range []string{"a0", "a1", "b0", "b1"} {
			s.fleet(domain, 1)
		}
		s.zoned(1)
		s.setBudget("a", "org:a", 64)
		s.setBudget("b", "org:b", 64)
		s.submitWithSpares("holder", "org:a", 1, 1, 8, 0, checkpointed)
		s.work()
		s.during(time.Minute)
		held := s.nodesOf("holder")[0]
		s.submitWithSpares("wants", "org:b", 2, 1, 8, 0, sharing)
		s.work()
		s.running("wants", "although a zone has room for it")
		s.running("holder", "although free GPUs do")
		if s.Zone(held) != "a" {
			s.t.Fatalf("the holder is on %s", held)
		}
		s.inZone("wants", "b")
	})
}
