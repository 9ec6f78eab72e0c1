package cli

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// committed is a Reservation whose nonce is committed to; revealed is it after its activation: two tickets of three were
// drawn, and a Run was shrunk.
func committed() (*rqv1.Reservation, [32]byte) {
	run := runOf("big", 64, 0, waits("InsufficientGPUs", "60 GPUs are short"))
	r := reservationOf(&run, 60,
		conflict(rqv1.CutShrink, "org:mm", "elastic", 16, "1"),
		conflict(rqv1.CutLottery, "org:mm", "mm1", 48, "0.5"),
		conflict(rqv1.CutLottery, "org:mm", "mm2", 4, "0.5"),
		conflict(rqv1.CutLottery, "org:rai", "ra2", 16, "1"))
	r.TypeMeta = metav1.TypeMeta{APIVersion: rqv1.GroupVersion.String(), Kind: "Reservation"}
	nonce := resolver.Nonce([]byte("a key of the tests"), r.UID)
	r.Status.Lottery = &rqv1.Lottery{Commitment: resolver.Commitment(nonce), Odds: "exact"}
	return &r, nonce
}

func revealed(t *testing.T) *rqv1.Reservation {
	t.Helper()
	r, nonce := committed()
	r.Status.State, r.Status.ActivatedAt = rqv1.ReservationReleased, ptr(metav1.NewMicroTime(noon.Add(16*time.Minute+time.Millisecond)))
	r.Status.EndedAt = ptr(after(17 * time.Minute))
	r.Status.Lottery.ConflictSetDigest = resolver.Digest(r.Status.ConflictSet)
	r.Status.Lottery.Nonce = hex.EncodeToString(nonce[:])
	r.Status.Cuts = []rqv1.Cut{{Run: rqv1.NamespacedName{Namespace: "mm", Name: "elastic"}, UID: "elastic-uid", Action: rqv1.CutShrink, GPUs: 16, Width: ptr[int32](96)}}
	draw := resolver.NewDraw(nonce, r.Status.ConflictSet)
	for range 2 {
		ticket, ok := draw.Next()
		if !ok {
			t.Fatal("no ticket is left")
		}
		r.Status.Lottery.Draws = append(r.Status.Lottery.Draws, ticket)
		r.Status.Cuts = append(r.Status.Cuts, rqv1.Cut{Run: ticket.Run, UID: types.UID(ticket.Run.Name + "-uid"), Action: rqv1.CutLottery, GPUs: 4})
	}
	return r
}

// takenBack is the revealed record in which the first ticket was not needed in the end.
func takenBack(t *testing.T) *rqv1.Reservation {
	r := revealed(t)
	r.Status.Cuts = append(r.Status.Cuts[:1], r.Status.Cuts[2])
	return r
}

func tampered(t *testing.T) *rqv1.Reservation {
	r := revealed(t)
	r.Status.Lottery.Draws[0], r.Status.Lottery.Draws[1] = r.Status.Lottery.Draws[1], r.Status.Lottery.Draws[0]
	return r
}

func TestVerify(t *testing.T) {
	pending, _ := committed()
	fixed := revealed(t)
	fixed.Status.State, fixed.Status.EndedAt, fixed.Status.Cuts = rqv1.ReservationActivating, nil, nil
	fixed.Status.Lottery.Nonce, fixed.Status.Lottery.Draws = "", nil
	altered := fixed.DeepCopy()
	altered.Status.ConflictSet[1].GPUs = 47
	canceled := pending.DeepCopy()
	canceled.Status.State, canceled.Status.EndedAt = rqv1.ReservationCanceled, ptr(after(time.Minute))
	structural := revealed(t)
	structural.Status.Lottery.Draws, structural.Status.Cuts = nil, structural.Status.Cuts[:1]
	for name, c := range map[string]struct {
		record  *rqv1.Reservation
		verdict string
	}{
		"verify-valid":      {revealed(t), verdictValid},
		"verify-taken-back": {takenBack(t), verdictValid},
		"verify-structural": {structural, verdictValid},
		"verify-tampered":   {tampered(t), verdictInvalid},
		"verify-altered":    {altered, verdictInvalid},
		"verify-pending":    {pending, verdictUnrevealed},
		"verify-fixed":      {fixed, verdictUnrevealed},
		"verify-canceled":   {canceled, verdictUnrevealed},
	} {
		v := verify(c.record, noon.Add(2*time.Second))
		if v.Verdict != c.verdict {
			t.Errorf("%s: %s, want %s", name, v.Verdict, c.verdict)
		}
		var text strings.Builder
		if err := writeVerification(&text, v); err != nil {
			t.Fatal(err)
		}
		golden(t, name, text.String())
	}
	var text strings.Builder
	if err := inFormat("json", &text, verify(takenBack(t), noon)); err != nil {
		t.Fatal(err)
	}
	golden(t, "verify-json", text.String())
}

// text is an object as a file holds it.
func text(t *testing.T, object any) string {
	t.Helper()
	out, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Files are checked where no cluster is configured.
func TestVerifyFiles(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("KUBECONFIG", filepath.Join(dir, "none"))
	pending, _ := committed()
	valid := text(t, revealed(t))
	asJSON, err := json.Marshal(revealed(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"valid.yaml": valid, "tampered.yml": text(t, tampered(t)), "pending.yaml": text(t, pending), "valid.json": string(asJSON),
		"list.yaml":  text(t, map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": []any{revealed(t)}}),
		"two.yaml":   valid + "---\n" + valid,
		"run.yaml":   head,
		"extra.yaml": strings.Replace(valid, "  state:", "  winner: me\n  state:", 1),
		"empty.yaml": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args     string // DIR stands for the directory
		out, err string // what the output has to contain
		code     int
	}{
		{args: "--verify DIR/valid.yaml", out: "VERDICT    valid\n"},
		{args: "--verify DIR/valid.json", out: "VERDICT    valid\n"},
		{args: "--verify DIR/list.yaml", out: "VERDICT    valid\n"},
		{args: "--verify -", out: "VERDICT    valid\n"},
		{args: "--verify DIR/valid.yaml -o json", out: `"verdict": "valid"`},
		{args: "--verify DIR/valid.yaml -o name", out: "reservation.rq.davidlangworthy.io/big-r0\n"},
		{args: "--verify DIR/tampered.yml", out: "VERDICT    not valid\n", err: "Error: the record of Reservation rai/big-r0 is not valid\n", code: exitInvalid},
		{args: "--verify DIR/tampered.yml -o yaml", out: "verdict: invalid", err: "is not valid", code: exitInvalid},
		{args: "--verify DIR/pending.yaml", out: "not revealed yet", code: exitUnrevealed},
		{args: "--verify DIR/two.yaml", err: "two.yaml holds 2 objects; --verify checks one Reservation", code: exitError},
		{args: "--verify DIR/empty.yaml", err: "empty.yaml holds 0 objects", code: exitError},
		{args: "--verify DIR/run.yaml", err: "run.yaml holds a Run; --verify checks a Reservation", code: exitError},
		{args: "--verify DIR/extra.yaml", err: `extra.yaml, document 1: unknown field "status.winner"`, code: exitError},
		{args: "--verify DIR/absent.yaml", err: "cannot read", code: exitError},
		{args: "--verify DIR/valid.yaml trainer", err: `leave out the Run "trainer"`, code: exitUsage},
		{args: "--verify=", err: "say which Reservation or file to check", code: exitUsage},
		{args: "", err: "say which Run", code: exitUsage},
	} {
		streams, in, out, _ := genericiooptions.NewTestIOStreams()
		in.WriteString(valid)
		var problems strings.Builder
		args := append([]string{"explain"}, strings.Fields(strings.ReplaceAll(c.args, "DIR", dir))...)
		code := Execute(t.Context(), NewCommand(streams), args, &problems)
		if code != c.code || !strings.Contains(out.String(), c.out) || !strings.Contains(problems.String(), c.err) || c.err == "" && problems.Len() > 0 {
			t.Errorf("%s: code %d, want %d\noutput %q\n  want %q\nerror  %q\n  want %q", c.args, code, c.code, out, c.out, problems.String(), c.err)
		}
	}
}

// Whatever byte of the record is changed, the file is not called valid.
func TestVerifyFindsChanges(t *testing.T) {
	valid := revealed(t)
	for name, change := range map[string]func(*rqv1.ReservationStatus){
		"commitment": func(s *rqv1.ReservationStatus) { s.Lottery.Commitment = flip(s.Lottery.Commitment) },
		"nonce":      func(s *rqv1.ReservationStatus) { s.Lottery.Nonce = flip(s.Lottery.Nonce) },
		"digest":     func(s *rqv1.ReservationStatus) { s.Lottery.ConflictSetDigest = flip(s.Lottery.ConflictSetDigest) },
		"odds":       func(s *rqv1.ReservationStatus) { s.ConflictSet[1].Probability = "0.51" },
		"owner":      func(s *rqv1.ReservationStatus) { s.ConflictSet[1].Owner = "org:other" },
		"no ticket":  func(s *rqv1.ReservationStatus) { s.ConflictSet = s.ConflictSet[:3] },
		"draw":       func(s *rqv1.ReservationStatus) { s.Lottery.Draws[0].Run.Name = "elastic" },
		"cut":        func(s *rqv1.ReservationStatus) { s.Cuts[1].Run.Name = "elastic" },
		"no nonce":   func(s *rqv1.ReservationStatus) { s.Lottery.Nonce = "" },
		"no lottery": func(s *rqv1.ReservationStatus) { s.Lottery = nil },
	} {
		changed := valid.DeepCopy()
		change(&changed.Status)
		v := verify(changed, noon)
		if diff := cmp.Diff(verdictInvalid, v.Verdict); diff != "" || len(v.Differs) == 0 {
			t.Errorf("%s: %s %v", name, diff, v.Differs)
		}
		if err := writeVerification(&strings.Builder{}, v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// flip changes the first digit.
func flip(hexadecimal string) string {
	return fmt.Sprintf("%x", (strings.IndexByte("0123456789abcdef", hexadecimal[0])+1)%16) + hexadecimal[1:]
}
