package integration

import (
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestALargeGroup has somebody make a group of more pods than the fleet has room for, first for good and then for now.
// It waits as one, is told so in one place, and holds nothing; others start meanwhile, and each of its pods costs one
// write at most.
func TestALargeGroup(t *testing.T) {
	t.Parallel()
	pods := full(10000, 1000)
	s := newSite(t, ownCluster(t, withoutElection, map[string]any{"gangDeadline": "5s"}), 1, 2, int32(pods)+64)
	s.startScheduler()
	s.spends()
	s.submit("first", 8)
	s.await("first", rqv1.RunRunning, "bound 8 GPUs")
	run := s.groupRun("", "Group", "many")
	began, start := s.costs(), time.Now()
	words := append(inGroup("many", strconv.Itoa(pods)), "of!", "many")
	made := s.ofMany(pods, func(i int) error { return s.api.Create(t.Context(), s.saying(oneOfMany(i), 1, words...)) })
	s.promptly("while the group is made", "during")
	made.Wait()
	t.Logf("%d pods are made within %s", pods, time.Since(start).Round(time.Second))
	s.await(run, rqv1.RunPending, "at most 16 fit even when the fleet is empty")
	s.toldLittle(run)
	small := s.costs()
	s.cost("a group that never fits", small.minus(began), 200)

	// There is room for it once others have ended.
	s.addDomain("large", pods/1000, 999, func(node *corev1.Node) {
		room := *resource.NewQuantity(2000, resource.DecimalSI)
		node.Status.Allocatable[corev1.ResourcePods], node.Status.Capacity[corev1.ResourcePods] = room, room
	})
	s.promptly("while its pods get ranks", "beside")
	s.await(run, rqv1.RunPending, "fit now")
	s.podTold(oneOfMany(0), "fit now")
	eventually(t, "all of its pods are to have ranks", func() error {
		if ranked := len(s.podsOf(run)); ranked != pods {
			return fmt.Errorf("%d have", ranked)
		}
		return nil
	})
	s.toldLittle(run)
	s.cost("a group that does not fit now", s.costs().minus(small), pods+200)

	start = time.Now()
	gone := s.ofMany(pods, func(i int) error {
		name := metav1.ObjectMeta{Namespace: s.namespace, Name: oneOfMany(i)}
		return s.api.Delete(t.Context(), &corev1.Pod{ObjectMeta: name})
	})
	s.promptly("while its pods go", "after")
	gone.Wait()
	s.awaitGone(run)
	t.Logf("its pods and its Run are gone within %s", time.Since(start).Round(time.Second))
	s.settled()
	if peak, err := s.Scheduler.PeakMemory(); err != nil || peak > 1<<30 {
		t.Errorf("the scheduler has used %d MB (%v)", peak>>20, err)
	} else {
		t.Logf("the scheduler has used %d MB at most", peak>>20)
	}
}

func oneOfMany(i int) string { return fmt.Sprintf("many-%05d", i) }

// ofMany does something of each of so many pods, several at a time.
func (s *site) ofMany(pods int, do func(i int) error) *sync.WaitGroup {
	numbers, done := make(chan int), &sync.WaitGroup{}
	for range 8 {
		done.Go(func() {
			for i := range numbers {
				if err := do(i); err != nil {
					s.t.Errorf("pod %d: %v", i, err)
				}
			}
		})
	}
	done.Go(func() {
		defer close(numbers)
		for i := range pods {
			numbers <- i
		}
	})
	return done
}

// promptly has a Run start while others are busy.
func (s *site) promptly(when, name string) {
	s.t.Helper()
	took := s.startsIn(name, 8)
	s.t.Logf("%s a Run starts in %s", when, took.Round(time.Millisecond))
	if most := time.Duration(s.canary.worst() * float64(10*time.Second)); took > most {
		s.t.Errorf("%s a Run starts only in %s, want %s", when, took, most)
	}
}

// toldLittle fails if a group that waits holds anything, or is told so on more than a few objects.
func (s *site) toldLittle(run string) {
	s.t.Helper()
	if err := s.holdsNothing(run); err != nil {
		s.t.Error(err)
	}
	var pods corev1.PodList
	var events corev1.EventList
	for _, list := range []client.ObjectList{&pods, &events} {
		if err := s.api.List(s.t.Context(), list, client.InNamespace(s.namespace)); err != nil {
			s.t.Fatal(err)
		}
	}
	told := 0
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.Labels["of"] == "many" && len(pod.Status.Conditions) > 0 {
			told++
		}
	}
	if told > 3 || len(events.Items) > 50 {
		s.t.Errorf("%d pods are told, and there are %d events", told, len(events.Items))
	}
}

// costs is what a scheduler has done: how many writes, and for how many seconds it has computed.
type costs struct{ writes, seconds float64 }

func (c costs) minus(d costs) costs { return costs{c.writes - d.writes, c.seconds - d.seconds} }

var (
	writesSaid  = regexp.MustCompile(`(?m)^rest_client_requests_total\{.*method="(?:DELETE|PATCH|POST|PUT)"\} (\S+)$`)
	secondsSaid = regexp.MustCompile(`(?m)^process_cpu_seconds_total (\S+)$`)
)

// costs reads what the site's scheduler has done so far.
func (s *site) costs() costs {
	s.t.Helper()
	text := ""
	eventually(s.t, "the scheduler's metrics", func() (err error) {
		text, err = s.Metrics(s.t.Context(), s.Scheduler)
		return err
	})
	sum := func(of *regexp.Regexp) (n float64) {
		for _, said := range of.FindAllStringSubmatch(text, -1) {
			value, err := strconv.ParseFloat(said[1], 64)
			if err != nil {
				s.t.Fatal(err)
			}
			n += value
		}
		return n
	}
	return costs{sum(writesSaid), sum(secondsSaid)}
}

// cost fails if a scheduler has written more than it may have.
func (s *site) cost(of string, is costs, most int) {
	s.t.Helper()
	s.t.Logf("%s costs %.0f writes and %.1f s of the scheduler", of, is.writes, is.seconds)
	if is.writes > float64(most) || is.writes == 0 {
		s.t.Errorf("%s costs %.0f writes, want %d at most", of, is.writes, most)
	}
}
