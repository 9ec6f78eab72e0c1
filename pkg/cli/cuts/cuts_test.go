package cuts

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/brake"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/world"
)

// brakeOf is the ConfigMap with some data.
func brakeOf(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: world.SchedulerNamespace, Name: brake.ConfigMap},
		Data: data}
}

// stored is how the brakes stand by what an API server holds.
func stored(t *testing.T, server *clitest.Server) brake.State {
	t.Helper()
	said := clitest.Do(t, server, Command, "status", "-o", "json")
	if said.Code != 0 {
		t.Fatalf("%+v", said)
	}
	data := map[string]string{}
	for _, key := range []string{"paused", "pausedBy", "pausedAt", "pausedBecause", "call-off.rai.big-r0",
		"call-off.rai.old-r0"} {
		if value := server.Get(brakeOf(nil), "data", key); value != "" {
			data[key] = value
		}
	}
	return brake.Parse(data)
}

// activating is a Reservation that others leave for.
func activating(name string) *rqv1.Reservation {
	run := clitest.RunOf(name, 64, 0, clitest.Runs(64))
	r := clitest.ReservationOf(&run, 8)
	r.Status.State = rqv1.ReservationActivating
	r.Status.ActivatedAt = clitest.Ptr(metav1.NewMicroTime(clitest.Noon.Add(30 * time.Minute)))
	r.Status.Cuts = []rqv1.Cut{{Run: rqv1.NamespacedName{Namespace: "mm", Name: "a"}, Action: rqv1.CutLottery},
		{Run: rqv1.NamespacedName{Namespace: "mm", Name: "b"}, Action: rqv1.CutDropSpare}}
	return &r
}

// TestPauseAndResume brakes where there is no ConfigMap yet, where there is one, and where somebody has written
// nonsense.
func TestPauseAndResume(t *testing.T) {
	for name, server := range map[string]*clitest.Server{
		"no ConfigMap":       clitest.NewServer(t),
		"a ConfigMap":        clitest.NewServer(t, brakeOf(map[string]string{"note": "ours"})),
		"one with no sense":  clitest.NewServer(t, brakeOf(map[string]string{"paused": "for a while"})),
		"one that is paused": clitest.NewServer(t, brakeOf(map[string]string{"paused": "true", "pausedBy": "bob"})),
	} {
		said := clitest.Do(t, server, Command, "pause", "--because", "a wave of\nfailures")
		state := stored(t, server)
		if said.Code != 0 || !state.Paused || state.By != "ada" || state.Because != "a wave of\nfailures" ||
			state.Problem != "" || !state.At.Equal(clitest.Noon.Add(time.Hour)) {
			t.Errorf("%s, paused: %+v: %+v", name, said, state)
		}
		if !strings.Contains(clitest.Do(t, server, Command, "status").Out, "cuts are paused by ada") {
			t.Errorf("%s: the status does not say who has paused", name)
		}
		said = clitest.Do(t, server, Command, "resume")
		if state = stored(t, server); said.Code != 0 || state.Says() != "" {
			t.Errorf("%s, resumed: %+v: %+v", name, said, state)
		}
		if name == "a ConfigMap" && server.Get(brakeOf(nil), "data", "note") != "ours" {
			t.Error("what others keep in the ConfigMap is gone")
		}
	}
}

// TestCallOff tells which activations may be called off. What was called off before and is over goes with the next
// word.
func TestCallOff(t *testing.T) {
	off := func(name string, uid types.UID) (string, string) {
		change, err := brake.Off(types.NamespacedName{Namespace: "rai", Name: name}, brake.CallOff{UID: uid})
		if err != nil {
			t.Fatal(err)
		}
		for key, value := range change {
			return key, *value
		}
		return "", ""
	}
	oldKey, oldWord := off("old-r0", "old-uid")
	bigKey, bigWord := off("big-r0", "the UID of one before")
	over := activating("over")
	over.Status.State = rqv1.ReservationReleased
	for name, c := range map[string]struct {
		before map[string]string
		args   string
		code   int
		told   string
		off    bool
	}{
		"one that activates": {args: "big-r0", told: "Reservation rai/big-r0 is called off", off: true},
		"by its namespace":   {args: "rai/big-r0 -n rai", told: "Reservation rai/big-r0 is called off", off: true},
		"in two namespaces": {args: "rai/big-r0 -n mm", code: session.ExitUsage,
			told: `rai/big-r0 is in namespace "rai", and -n says "mm": leave one of them out`},
		"besides one that is gone": {before: map[string]string{oldKey: oldWord}, args: "big-r0", told: "called off",
			off: true},
		"after a namesake that was so": {before: map[string]string{bigKey: bigWord}, args: "big-r0", told: "called off",
			off: true},
		"one that is over": {args: "over-r0", code: session.ExitError,
			told: "is Released: there is nothing left to call off"},
		"one that is not there": {args: "none-r0", code: session.ExitError,
			told: "there is no Reservation rai/none-r0"},
		"none": {code: session.ExitUsage, told: "name a Reservation"},
	} {
		r := activating("big")
		server := clitest.NewServer(t, r, over, brakeOf(c.before))
		said := clitest.Do(t, server, Command, append([]string{"call-off"}, strings.Fields(c.args)...)...)
		if said.Code != c.code || !strings.Contains(said.Out+said.Err, c.told) {
			t.Errorf("%s: %+v lacks %q", name, said, c.told)
		}
		state := stored(t, server)
		if word, isOff := state.Off(types.NamespacedName{Namespace: "rai", Name: "big-r0"}, r.UID); isOff != c.off ||
			isOff && (word.By != "ada" || !word.At.Equal(clitest.Noon.Add(time.Hour))) {
			t.Errorf("%s: called off: %v by %+v", name, isOff, word)
		}
		if _, stays := state.CalledOff[types.NamespacedName{Namespace: "rai", Name: "old-r0"}]; stays {
			t.Errorf("%s: what was called off and is gone stays", name)
		}
	}
}

// TestStatus counts the Runs that were ended or shrunk within the hour, and says what goes on.
func TestStatus(t *testing.T) {
	recent, old := activating("big"), activating("old")
	old.Status.ActivatedAt = clitest.Ptr(metav1.NewMicroTime(clitest.Noon)) // an hour ago to the microsecond
	old.Status.State, old.Status.CalledOff = rqv1.ReservationCanceled, "by bob: a mistake"
	server := clitest.NewServer(t, recent, old)
	var got cutsAnswer
	if err := json.Unmarshal([]byte(clitest.Do(t, server, Command, "status", "-o", "json").Out), &got); err != nil {
		t.Fatal(err)
	}
	want := cutsAnswer{CutsLastHour: 1, Activating: []string{"rai/big-r0"},
		CalledOff: []calledOffRow{{"rai/old-r0", "by bob: a mistake"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if said := clitest.Do(t, server, Command, "status", "-o",
		"name"); said.Out != "reservation.rq.davidlangworthy.io/big-r0\n" {
		t.Errorf("%+v", said)
	}
	text := clitest.Do(t, server, Command, "status").Out
	for _, want := range []string{"cuts are not paused", "Runs cut in the last hour: 1", "activating: rai/big-r0",
		"a mistake"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
}

// TestWithoutTheRight says that the brake was not pulled, and which right that takes.
func TestWithoutTheRight(t *testing.T) {
	for verb, args := range map[string]string{"patch": "pause", "get": "status", "create": "pause"} {
		server := clitest.NewServer(t)
		server.Before = func(request string) error {
			if strings.HasPrefix(request, verb+" configmaps") {
				return clitest.Forbidden(verb, "configmaps")
			}
			return nil
		}
		said := clitest.Do(t, server, Command, args)
		if said.Code != session.ExitError || said.Out != "" || !strings.Contains(said.Err,
			`cannot `+verb+` resource "configmaps"`) {
			t.Errorf("%s without %s: %+v", args, verb, said)
		}
	}
	if said := clitest.Do(t, clitest.NewServer(t), Command, "stop"); said.Code != session.ExitUsage ||
		!strings.Contains(said.Err, "choose from status, pause, resume, call-off") {
		t.Errorf("%+v", said)
	}
}
