package v1

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Ended reports whether a Run is over: Completed or Failed.
func (r *Run) Ended() bool {
	return r.Status.Phase == RunCompleted || r.Status.Phase == RunFailed
}

// FinishedAt returns when a Run ended, in whole seconds; false for one that has not, or of which that is not recorded.
func (r *Run) FinishedAt() (time.Time, bool) {
	finished := meta.FindStatusCondition(r.Status.Conditions, ConditionFinished)
	if !r.Ended() || finished == nil || finished.Status != metav1.ConditionTrue || finished.LastTransitionTime.IsZero() {
		return time.Time{}, false
	}
	return finished.LastTransitionTime.Time, true
}

// WhatIf reports whether a Run is only there to ask what would happen if it were submitted (R39): it is suspended, and
// says so by its name, which nobody can give to another Run, by its label, and by how long it stays.
func (r *Run) WhatIf() bool {
	return r.Suspended() && strings.HasPrefix(r.Name, WhatIfPrefix) && r.Labels[LabelWhatIf] == "true" &&
		r.Spec.TTLSecondsAfterFinished != nil
}

// ExpiresAt returns when a Run that has ended is to be deleted (R39), by its own ttlSecondsAfterFinished or else after
// a time that is given, where 0 stands for never; false for one that has not ended or that stays. One that only asks is
// to be deleted after its own time from when it was made.
func (r *Run) ExpiresAt(byDefault time.Duration) (time.Time, bool) {
	finished, ended := r.FinishedAt()
	switch own := r.Spec.TTLSecondsAfterFinished; {
	case r.WhatIf():
		return r.CreationTimestamp.Add(time.Duration(*own) * time.Second), true
	case !ended:
	case own != nil:
		return finished.Add(time.Duration(*own) * time.Second), true
	case byDefault > 0:
		return finished.Add(byDefault), true
	}
	return time.Time{}, false
}

// StartedAt returns when a Run that runs started, in whole seconds; false for one that does not run.
func (r *Run) StartedAt() (time.Time, bool) {
	started := meta.FindStatusCondition(r.Status.Conditions, ConditionStarted)
	if r.Status.Phase != RunRunning || started == nil || started.Status != metav1.ConditionTrue {
		return time.Time{}, false
	}
	return started.LastTransitionTime.Time, true
}

// SuspendedSince returns since when a Run is suspended, as its status says; false where it does not say so.
func (r *Run) SuspendedSince() (time.Time, bool) {
	is := meta.FindStatusCondition(r.Status.Conditions, ConditionSuspended)
	if is == nil || is.Status != metav1.ConditionTrue {
		return time.Time{}, false
	}
	return is.LastTransitionTime.Time, true
}

// MaxDuration returns how long a Run takes at most; 0 when it does not say.
func (s *RunSpec) MaxDuration() time.Duration {
	if s.Runtime == nil || s.Runtime.MaxDuration == nil {
		return 0
	}
	return s.Runtime.MaxDuration.Duration
}

// Suspended reports whether a Run that has not ended is held back, or is to give up what it holds (R39).
func (r *Run) Suspended() bool { return r.Spec.Suspend && !r.Ended() }

// StartupDeadline returns how long a rank may take to be ready from when it was bound; 0 when that is not bounded.
func (s *RunSpec) StartupDeadline() time.Duration {
	if s.Runtime == nil || s.Runtime.StartupDeadline == nil {
		return 0
	}
	return s.Runtime.StartupDeadline.Duration
}

// Until returns when a Run that starts at an instant ends by its maxDuration; zero when it has none.
func (s *RunSpec) Until(start time.Time) time.Time {
	if most := s.MaxDuration(); most > 0 {
		return start.Add(most)
	}
	return time.Time{}
}

// EndsAt returns when the maxDuration of a Run that runs is over; zero and false for one that does not run or is not
// bounded.
func (r *Run) EndsAt() (time.Time, bool) {
	started, runs := r.StartedAt()
	if !runs {
		return time.Time{}, false
	}
	end := r.Spec.Until(started)
	return end, !end.IsZero()
}

// RequeuesOnTimeout reports whether the Run waits again once its maxDuration is over (rule R22). Shards start again by
// themselves, and pods that others make as their controllers have it.
func (s *RunSpec) RequeuesOnTimeout() bool {
	return s.Runtime != nil && s.Runtime.OnTimeout == TimeoutRequeue && !s.Opportunistic && !s.Theirs()
}

// QueuedSince returns since when the Run has its place in line, unless others of its owner have exchanged theirs with
// it: since its maxDuration was last over, or else since it was made, and later by as long as it was suspended (R39).
func (r *Run) QueuedSince() time.Time {
	since := r.CreationTimestamp.Time
	if t := r.Status.Timeouts; t != nil {
		since = t.Last.Time
	}
	return since.Add(time.Duration(r.Status.SuspendedSeconds) * time.Second)
}

// Checkpoints reports whether the Run declares a checkpoint, so that it may be requeued (rule R22).
func (s *RunSpec) Checkpoints() bool { return s.Runtime != nil && s.Runtime.Checkpoint != nil }

// CheckpointInterval returns how often the Run says that it saves its work; 0 when it declares no checkpoint.
func (s *RunSpec) CheckpointInterval() time.Duration {
	if !s.Checkpoints() {
		return 0
	}
	return s.Runtime.Checkpoint.Duration
}

// GroupSpares returns the GPUs that are to stand by in each group: in whole pods, where their size is known by now (R14),
// else as it asks for.
func (r *Run) GroupSpares() int32 {
	asked := r.Spec.GroupSpares()
	if r.Status.SparesPerGroup > 0 {
		return r.Status.SparesPerGroup
	} else if each := r.Spec.Resources.GPUsPerPod; each != nil && *each > 0 {
		return (asked + *each - 1) / *each * *each
	}
	return asked
}

// GroupSpares returns the GPUs that a Run asks to have stand by in each group: sparesPerGroup and spares are one field.
func (s *RunSpec) GroupSpares() int32 {
	for _, spares := range []*int32{s.SparesPerGroup, s.Spares} {
		if spares != nil {
			return *spares
		}
	}
	return 0
}
