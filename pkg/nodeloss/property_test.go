package nodeloss

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// life draws what is seen of a node, second by second, and returns when the last of it was seen. The node may fall
// silent and come back, raise conditions, be cordoned, recorded as lost, tainted or deleted.
func life(t *rapid.T, s *Sight) time.Time {
	ready := []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionTrue, corev1.ConditionFalse,
		corev1.ConditionUnknown}
	now := noon
	for range rapid.IntRange(1, 12).Draw(t, "sights") {
		now = now.Add(time.Duration(rapid.IntRange(0, 15000).Draw(t, "ms later")) * time.Millisecond)
		switch rapid.SampledFrom([]string{"node", "node", "node", "renewed", "renewed", "repeated", "no lease", "deleted"}).
			Draw(t, "sees") {
		case "node":
			n := node(is(corev1.NodeReady, rapid.SampledFrom(ready).Draw(t, "ready")))
			for _, kind := range []corev1.NodeConditionType{"XIDError", "Hot"} {
				if rapid.IntRange(0, 3).Draw(t, string(kind)) == 0 {
					is(kind, corev1.ConditionTrue)(n)
				}
			}
			if rapid.IntRange(0, 9).Draw(t, "taint") == 0 {
				tainted(corev1.TaintNodeOutOfService)(n)
			}
			n.Spec.Unschedulable = rapid.Bool().Draw(t, "cordoned")
			s.SeeNode(n, now)
		case "renewed":
			s.SeeHeartbeat(now.Add(-time.Hour), now) // by the kubelet's own clock
		case "repeated":
			s.SeeHeartbeat(s.renewal, now)
		case "no lease":
			s.LoseHeartbeat()
		case "deleted":
			s.SeeDeletion()
		}
	}
	return now
}

func drawn(t *rapid.T) (r Rules, s Sight, contact, now time.Time) {
	r = Rules{Grace: time.Duration(rapid.IntRange(1, 120).Draw(t, "grace")) * time.Second,
		Conditions: []string{"XIDError"}}
	now = life(t, &s)
	contact = noon.Add(time.Duration(rapid.IntRange(-60, 60).Draw(t, "contact")) * time.Second)
	if contact.After(now) {
		contact = now
	}
	return r, s, contact, now.Add(time.Duration(rapid.IntRange(0, 130000).Draw(t, "judged ms later")) * time.Millisecond)
}

// A timer that is set for Again finds what it was set for: nothing is evident the moment before, and a loss is then.
// Without an Again, nothing ever becomes evident by itself. What is lost stays so until something is seen.
func TestAgainIsWhenThereIsEvidence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, s, contact, now := drawn(t)
		v := r.Judge(&s, contact, now)
		week := now.Add(7 * 24 * time.Hour)
		switch {
		case v.Lost && (v.Since.After(now) || v.Reason == "" || v.Message == ""):
			t.Fatalf("lost as %+v at %s", v, now)
		case v.Lost && !v.Again.IsZero() && (!v.Again.After(now) || !r.Judge(&s, contact, v.Again).Again.IsZero()):
			t.Fatalf("%+v at %s is no older at the time to look again", v, now)
		case v.Lost && !r.Judge(&s, contact, week).Lost:
			t.Fatalf("lost (%+v) and a week later not, although nothing was seen", v)
		case !v.Lost && v.Again.IsZero() && r.Judge(&s, contact, week).Lost:
			t.Fatalf("lost without a time to look again: %+v", r.Judge(&s, contact, week))
		case !v.Lost && !v.Again.IsZero():
			if !v.Again.After(now) {
				t.Fatalf("look again at %s, which is not after %s", v.Again, now)
			}
			if early := r.Judge(&s, contact, v.Again.Add(-1)); early.Lost {
				t.Fatalf("lost before the time to look again, %s: %+v", v.Again, early)
			}
			if then := r.Judge(&s, contact, v.Again); !then.Lost {
				t.Fatalf("at the time to look again, %s: %+v", v.Again, then)
			}
		}
	})
}

// Nobody is taken for lost by a sign that does not count against the limit: else many nodes that fail together would
// be taken for lost one by one, none of them held back.
func TestEveryLossBySignCountsAgainstTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, s, contact, now := drawn(t)
		v, sign := r.Judge(&s, contact, now), r.Sign(&s, contact, now)
		if v.Lost && !v.Reason.Certain() && !sign {
			t.Fatalf("%+v is no sign", v)
		}
		if v.Lost && v.Reason.Certain() && sign {
			t.Fatalf("%+v counts against the limit", v)
		}
		// kubelets renew every 10 s: whoever falls silent together counts before the first of them is evident
		if silent := r.Grace >= 21*time.Second && v.Lost && (v.Reason == Stale || v.Reason == NotReady); silent &&
			latest(v.Since, contact).Add(r.Grace).Equal(now) && !r.Sign(&s, contact, now.Add(-early)) {
			t.Fatalf("%+v did not count %s before", v, early)
		}
	})
}

// A healthy node is never lost nor a sign, however long anybody looks.
func TestAHealthyNodeIsNotSuspected(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, s, _, now := drawn(t)
		s.SeeNode(node(is(corev1.NodeReady, corev1.ConditionTrue)), now) // it is back
		for range rapid.IntRange(1, 20).Draw(t, "renewals") {
			s.SeeHeartbeat(now, now)
			now = now.Add(time.Duration(rapid.IntRange(0, 10999).Draw(t, "ms")) * time.Millisecond)
			if v := r.Judge(&s, noon, now); r.Grace > 11*time.Second && (v.Lost || r.Sign(&s, noon, now)) {
				t.Fatalf("%+v, a sign: %v", v, r.Sign(&s, noon, now))
			}
		}
	})
}

// What the scheduler, or an administrator, has recorded is told as it was: when, why, and in which words.
func TestARecordIsToldAsItWas(t *testing.T) {
	reasons := []Reason{Deleted, OutOfService, Condition, NotReady, Stale, Administrator}
	messages := rapid.OneOf(rapid.Just(""), rapid.String(), rapid.StringMatching(`[ a-zé\n]{0,40}`))
	rapid.Check(t, func(t *rapid.T) {
		v := Verdict{Lost: true, Reason: rapid.SampledFrom(reasons).Draw(t, "reason"), Message: messages.Draw(t, "message")}
		at := time.Unix(0, rapid.Int64().Draw(t, "at")).In(time.FixedZone("", rapid.IntRange(-14, 14).Draw(t, "zone")*3600))
		n := node(func(n *corev1.Node) {
			n.Spec.Unschedulable, n.Annotations = true, map[string]string{rqv1.AnnotationLost: Record(v, at)}
		})
		when, reason, message, told := Told(n.Annotations[rqv1.AnnotationLost])
		if !told || !when.Equal(at) || reason != v.Reason || message != v.Message {
			t.Fatalf("%+v at %s is told as %s %q %q (%v)", v, at, when, reason, message, told)
		}
		if seen, lost := Recorded(n); !lost || !seen.Equal(at) {
			t.Fatalf("recorded at %s: %s (%v)", at, seen, lost)
		}
	})
	for _, byHand := range []string{"", "gone", "2030-01-02 Stale silent", "yesterday Administrator said so",
		strings.Repeat("x", 1000)} {
		if at, reason, message, told := Told(byHand); told {
			t.Errorf("%q is told as %s %q %q", byHand, at, reason, message)
		}
	}
}
