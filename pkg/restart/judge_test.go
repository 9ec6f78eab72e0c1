package restart

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is a Run of four ranks, as its status tells of it.
type world struct {
	rules  Rules
	status History
	pods   int
	// made is when the pod of a rank was made to start it again.
	made map[int32]time.Time
	on   map[int32]string
}

func newWorld(limit int32) *world {
	return &world{rules: Rules{Limit: limit, Quiet: 10 * time.Minute, codes: map[string]rqv1.RestartAction{
		"42": rqv1.ActionFail, "43": rqv1.ActionMove}}, status: History{Ranks: 4}, made: map[int32]time.Time{},
		on: map[int32]string{}}
}

// die has ranks die at an instant after noon with an exit code, and judges that at another.
func (w *world) die(at, seen time.Duration, code int32, ranks ...int32) Verdict {
	var deaths []Death
	for _, index := range ranks {
		w.pods++
		node := w.on[index]
		if node == "" {
			node = fmt.Sprintf("n%d", index)
		}
		deaths = append(deaths, Death{RunDeath: rqv1.RunDeath{Pod: types.UID(fmt.Sprint(w.pods)), Index: index, Node: node,
			Cause: rqv1.CauseProgram, ExitCode: code, At: metav1.NewTime(noon.Add(at))}, Again: w.made[index]})
	}
	v := Judge(w.rules, w.status, deaths, noon.Add(seen))
	w.status.Restarts, w.status.Deaths = v.Restarts, append(w.status.Deaths, v.Deaths...)
	for i := range v.Deaths {
		w.made[v.Deaths[i].Index] = noon.Add(seen)
	}
	return v
}

func (w *world) ready(at time.Duration) {
	when := metav1.NewTime(noon.Add(at))
	w.status.Restarts.Ready = &when
}

// told tells of a verdict in a few words.
func told(v Verdict) string {
	out := ""
	for _, d := range v.Deaths {
		first := ""
		if d.First {
			first = "!"
		}
		out += fmt.Sprintf("%d%s:%s ", d.Index, first, d.Action)
	}
	if v.Restarts != nil {
		out += fmt.Sprintf("%d/%d", v.Restarts.Counted, v.Restarts.Incidents)
	}
	if v.Failure != nil {
		out += " " + string(v.Failure.Why)
	}
	if !v.Wait.IsZero() {
		out += " wait " + v.Wait.Sub(noon).String()
	}
	return out
}

func (w *world) want(t *testing.T, v Verdict, want string) {
	t.Helper()
	if diff := cmp.Diff(want, told(v)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

const s, m = time.Second, time.Minute

func TestTheFirstToDieIsBlamed(t *testing.T) {
	w := newWorld(3)
	w.want(t, w.die(0, 0, 1, 2), "2!:Restart 1/1")
	w.want(t, w.die(3*s, 3*s, 1, 0, 1, 3), "0:Restart 1:Restart 3:Restart 1/1")
	w.want(t, w.die(5*s, 5*s, 1, 2), "2:Restart 1/1") // it has died of the others
	w.want(t, w.die(20*s, 23*s, 1, 2), "2!:Move 2/2") // it has not, a third time
}

// TestOthersGiveUpLate has the others wait for the dead rank as long as a collective operation does.
func TestOthersGiveUpLate(t *testing.T) {
	w := newWorld(3)
	w.die(0, 0, 1, 2)
	w.ready(5 * s)
	w.want(t, w.die(9*m, 9*m, 1, 0, 1, 3), "0:Restart 1:Restart 3:Restart 1/1")
	w.ready(9*m + 5*s)
	w.want(t, w.die(11*m, 11*m, 1, 0), "0!:Restart 2/2") // over by then
}

// What is told late of a rank that its kubelet had started again by the time that all were ready does not undo that.
func TestADeathIsToldAfterAllAreReadyAgain(t *testing.T) {
	w := newWorld(3)
	w.die(0, 0, 1, 2)
	w.ready(time.Minute)
	for _, c := range []struct {
		at       time.Duration
		restarts int32
		ready    bool
	}{{30 * s, 1, true}, {time.Minute, 1, true}, {2 * time.Minute, 1, false}, {30 * s, 0, false}} {
		v := Judge(w.rules, w.status, []Death{{RunDeath: rqv1.RunDeath{Pod: "other", Index: 1, Restarts: c.restarts,
			At: metav1.NewTime(noon.Add(c.at))}}}, noon.Add(2*time.Minute))
		if ready := v.Restarts.Ready != nil; ready != c.ready || v.Restarts.Incidents != 1 {
			t.Errorf("died at %s, started again %d times: %+v, want ready %v", c.at, c.restarts, v.Restarts, c.ready)
		}
	}
}

func TestARankThatDiesAgainMoves(t *testing.T) {
	w := newWorld(5)
	w.die(0, 0, 1, 2)
	w.ready(5 * s)
	w.want(t, w.die(20*s, 20*s, 1, 2), "1/1 wait 23s") // whether the others die with it
	w.want(t, w.die(20*s, 23*s, 1, 2), "2!:Move 2/2")
	w.on[2] = "spare"
	w.ready(25 * s)
	w.want(t, w.die(40*s, 43*s, 1, 2), "2!:Move 3/3")
	w.on[2] = "third"
	w.ready(45 * s)
	v := w.die(60*s, 63*s, 1, 2)
	w.want(t, v, "2!: 4/4 DiedOnEveryNode")
	want := "rank 2 died on node third: failed (container , exit code 1); it has died on n2 (twice), spare, third, so " +
		"its program is the likely cause"
	if diff := cmp.Diff(want, v.Failure.String()); diff != "" {
		t.Error(diff)
	}
}

// TestAllDieTogether has nobody be blamed, however often.
func TestAllDieTogether(t *testing.T) {
	w := newWorld(2)
	w.want(t, w.die(0, 0, 1, 3, 2, 1, 0), "0!:Restart 1:Restart 2:Restart 3:Restart 1/1")
	w.ready(5 * s)
	w.want(t, w.die(30*s, 33*s, 1, 3, 2, 1, 0), "0!:Restart 1:Restart 2:Restart 3:Restart 2/2")
	w.ready(35 * s)
	v := w.die(60*s, 63*s, 1, 0, 1, 2, 3)
	w.want(t, v, "0!: 1:Restart 2:Restart 3:Restart 3/3 RestartLimit")
	want := "rank 0 died on node n0: failed (container , exit code 1); it was the first to die 3 times, on n0 (3 " +
		"times), and the Run has restarted 2 times without a long enough quiet time in between, which is its limit " +
		"(runtime.restarts.limit)"
	if diff := cmp.Diff(want, v.Failure.String()); diff != "" {
		t.Error(diff)
	}
}

func TestQuietForgives(t *testing.T) {
	w := newWorld(1)
	for i := range time.Duration(5) {
		w.want(t, w.die(i*30*m, i*30*m, 1, 1), fmt.Sprintf("1!:Restart 1/%d", i+1))
		w.ready(i*30*m + 10*s)
	}
	w.want(t, w.die(2*time.Hour+9*m, 2*time.Hour+10*m, 1, 1), "1!: 2/6 RestartLimit")
}

func TestExitCodes(t *testing.T) {
	w := newWorld(3)
	w.want(t, w.die(0, 0, 43, 1), "1!:Move 1/1")
	w.want(t, w.die(2*s, 2*s, 42, 2), "2: 1/1 ExitCode")
	w = newWorld(3)
	v := w.die(0, 0, 42, 1)
	w.want(t, v, "1!: 1/1 ExitCode")
	if want := "onExitCodes says Fail for exit code 42"; !strings.Contains(v.Failure.String(), want) {
		t.Errorf("%q does not say %q", v.Failure, want)
	}
}

// TestAProgramThatAlwaysDies ends, whether or not its ranks are ever ready and whoever dies when.
func TestAProgramThatAlwaysDies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(int32(rapid.IntRange(1, 4).Draw(t, "limit")))
		at, ready := time.Duration(0), rapid.Bool().Draw(t, "ready")
		for i := 0; ; i++ {
			if i > 400 {
				t.Fatalf("it goes on: %+v", w.status.Restarts)
			}
			at += time.Duration(rapid.IntRange(10, 60).Draw(t, "seconds")) * s
			v := w.die(at, at+3*s, 1, rapid.SliceOfNDistinct(rapid.Int32Range(0, 3), 1, 4, rapid.ID).Draw(t, "ranks")...)
			if v.Failure != nil {
				return
			}
			if ready {
				w.ready(at + 5*s)
			}
		}
	})
}

// TestAClockThatIsWrong has a rank's kubelet be behind, so that what it tells seems to be of before the incident.
func TestAClockThatIsWrong(t *testing.T) {
	w := newWorld(1)
	w.die(0, 0, 1, 0)
	for i := range time.Duration(20) {
		w.made[1] = noon.Add(-2*time.Hour + i*20*s)
		if v := w.die(-2*time.Hour+i*20*s+10*s, i*20*s, 1, 1); v.Failure != nil {
			return
		}
	}
	t.Errorf("it goes on: %+v", w.status.Restarts)
}

// TestJudgedInAnyOrder has the order in which deaths are seen make no difference.
func TestJudgedInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var deaths []Death
		for index := range int32(6) {
			deaths = append(deaths, Death{RunDeath: rqv1.RunDeath{Pod: types.UID(fmt.Sprint(index)), Index: index,
				At: metav1.NewTime(noon.Add(time.Duration(rapid.IntRange(0, 700).Draw(t, "at")) * s))}})
		}
		rules := newWorld(3).rules
		want := Judge(rules, History{Ranks: 6}, deaths, noon.Add(time.Hour))
		got := Judge(rules, History{Ranks: 6}, rapid.Permutation(deaths).Draw(t, "order"), noon.Add(time.Hour))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}
