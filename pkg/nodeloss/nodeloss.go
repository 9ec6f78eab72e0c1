package nodeloss

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Reason is the kind of evidence that a node is lost.
type Reason string

// Values of Reason.
const (
	// Deleted: there is no such Node.
	Deleted Reason = "NodeDeleted"
	// OutOfService: the node carries the taint node.kubernetes.io/out-of-service.
	OutOfService Reason = "OutOfService"
	// Condition: a condition that configuration lists, or a checker that it names writes, is True.
	Condition Reason = "NodeCondition"
	// NotReady: the condition Ready has not been True for longer than the grace.
	NotReady Reason = "NodeNotReady"
	// Stale: the kubelet has not renewed its lease for longer than the grace.
	Stale Reason = "KubeletLeaseStale"
	// Administrator: a person who may write the Node says so.
	Administrator Reason = "Administrator"
)

// Certain reports whether evidence of a kind is never held back, however many nodes show it: somebody who must know has
// given it.
func (r Reason) Certain() bool { return r == Deleted || r == OutOfService || r == Administrator }

// Rules say what counts as evidence, beside what always does.
type Rules struct {
	// Grace is how long a node may be not Ready, or its kubelet silent.
	Grace time.Duration
	// Conditions are the types of node conditions that mean a loss when they are True.
	Conditions []string
}

// Sight is what has been seen of one node. The zero Sight has seen nothing.
type Sight struct {
	node *corev1.Node
	gone bool
	// unready is since when Ready has been seen not to be True; zero while it is.
	unready time.Time
	// raised are the other conditions that have been seen to be True, and since when; changed is when these became others.
	raised  map[corev1.NodeConditionType]time.Time
	changed time.Time
	// renewal is what the kubelet last wrote, and renewed when that was seen; zero without a kubelet lease.
	renewal, renewed time.Time
}

// SeeNode notes the Node as it is at an instant.
func (s *Sight) SeeNode(node *corev1.Node, now time.Time) {
	if s.node != nil && s.node.UID != node.UID {
		*s = Sight{} // nothing that was seen is of this one
	}
	if s.node == nil || s.gone {
		s.changed = now
	}
	s.node, s.gone = node, false
	s.raise(node, now)
	ready := condition(node, corev1.NodeReady)
	switch {
	case ready == nil || ready.Status == corev1.ConditionTrue:
		s.unready = time.Time{}
	case s.unready.IsZero():
		s.unready = now
	}
}

// SeeDeletion notes that the Node has been deleted, as told by the API server.
func (s *Sight) SeeDeletion() { s.gone = true }

// Gone reports whether it has been, and nothing was seen of another since.
func (s *Sight) Gone() bool { return s.gone }

// SeeHeartbeat notes the time that the kubelet's lease says it was renewed at, as it is at an instant.
func (s *Sight) SeeHeartbeat(renewal, now time.Time) {
	if s.renewed.IsZero() || !renewal.Equal(s.renewal) {
		s.renewal, s.renewed = renewal, now
	}
}

// LoseHeartbeat notes that there is no kubelet lease any more.
func (s *Sight) LoseHeartbeat() { s.renewal, s.renewed = time.Time{}, time.Time{} }

// Verdict is what a Sight comes to.
type Verdict struct {
	// Lost says that there is evidence; Reason and Message say which, and Since from when.
	Lost    bool
	Reason  Reason
	Message string
	Since   time.Time
	// Again is when there will be evidence if nothing is seen until then; zero for never. With Lost it is when the
	// evidence holds whatever other nodes show: until then it does while few of them do.
	Again time.Time
}

// Judge returns whether a node is lost at an instant. contact is since when what was seen is known to be current
// without interruption: nobody's silence counts from before that.
func (r Rules) Judge(s *Sight, contact, now time.Time) Verdict {
	switch {
	case s.gone:
		return Verdict{Lost: true, Reason: Deleted, Message: "the Node was deleted", Since: now}
	case s.node == nil:
		return Verdict{}
	}
	reason, message, evident := r.Evident(s.node)
	if evident && reason.Certain() {
		return Verdict{Lost: true, Reason: reason, Message: message, Since: now}
	}
	if evident {
		v := Verdict{Lost: true, Reason: reason, Message: message, Since: r.raisedSince(s)}
		if due := v.Since.Add(r.gathering()); now.Before(due) {
			v.Again = due
		}
		return v
	}
	return r.silence(s, contact, now)
}

// Evident reports whether a Node says of itself that it is lost, whatever the time: by its taints and by the conditions
// that configuration lists.
func (r Rules) Evident(node *corev1.Node) (reason Reason, message string, lost bool) {
	for i := range node.Spec.Taints {
		if t := &node.Spec.Taints[i]; t.Key == corev1.TaintNodeOutOfService {
			return OutOfService, fmt.Sprintf("taint %s=%s", t.Key, t.Value), true
		}
	}
	for i := range node.Status.Conditions {
		c := &node.Status.Conditions[i]
		if c.Status == corev1.ConditionTrue && slices.Contains(r.Conditions, string(c.Type)) {
			return Condition, conditionBegins + string(c.Type) + conditionGoesOn + c.Message, true
		}
	}
	return "", "", false
}

// silence judges by what lasts for too long.
func (r Rules) silence(s *Sight, contact, now time.Time) Verdict {
	again := time.Time{}
	for _, sign := range []struct {
		since   time.Time
		reason  Reason
		message string
	}{
		{s.unready, NotReady, "the condition Ready has not been True for %s"},
		{s.renewed, Stale, "the kubelet has not renewed its lease for %s"},
	} {
		if sign.since.IsZero() {
			continue
		}
		since := sign.since
		if since.Before(contact) {
			since = contact
		}
		due := since.Add(r.Grace)
		if !now.Before(due) {
			return Verdict{Lost: true, Reason: sign.reason,
				Message: fmt.Sprintf(sign.message, now.Sub(since).Truncate(time.Second)), Since: since}
		}
		if again.IsZero() || due.Before(again) {
			again = due
		}
	}
	return Verdict{Again: again}
}

// raise notes which conditions are True, apart from Ready.
func (s *Sight) raise(node *corev1.Node, now time.Time) {
	was := s.raised
	s.raised = nil
	for i := range node.Status.Conditions {
		c := &node.Status.Conditions[i]
		if c.Status != corev1.ConditionTrue || c.Type == corev1.NodeReady {
			continue
		}
		since, known := was[c.Type]
		if !known {
			since, s.changed = now, now
		}
		if s.raised == nil {
			s.raised = map[corev1.NodeConditionType]time.Time{}
		}
		s.raised[c.Type] = since
	}
	if len(was) > len(s.raised) { // one that was True is not any more, unless another has come, which counts as well
		s.changed = now
	}
}

// raisedSince returns since when a condition that means a loss has been seen to be True: the first of several.
func (r Rules) raisedSince(s *Sight) time.Time {
	var first time.Time
	for kind, since := range s.raised {
		if slices.Contains(r.Conditions, string(kind)) && (first.IsZero() || since.Before(first)) {
			first = since
		}
	}
	return first
}

func condition(node *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == kind {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}
