package lifecycle

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// setRoomKept says whether the Run keeps its room: from when it is requeued because of a node's loss until it has started again
// or has not in time (R22). One that was cut keeps nothing, nor does one that lacks a rank which somebody ended. The book goes by
// it, also after a restart.
func (s *state) setRoomKept(next *rqv1.RunStatus) {
	condition := metav1.Condition{Type: rqv1.ConditionRoomKept, Status: metav1.ConditionFalse, ObservedGeneration: s.Run.Generation}
	switch kept := meta.IsStatusConditionTrue(next.Conditions, rqv1.ConditionRoomKept); {
	case s.requeued() && s.cut == nil && s.Shape == nil && len(s.Lost) > 0:
		meta.RemoveStatusCondition(&next.Conditions, rqv1.ConditionRoomKept) // each time is one of its own
		condition.Status, condition.Reason = metav1.ConditionTrue, "Requeued"
		condition.Message = fmt.Sprintf("what the Run held is kept for it, lost nodes apart, until %s after the last of its old pods is gone", s.GangDeadline)
	case !kept:
		return
	case s.phase == rqv1.RunRunning:
		condition.Reason, condition.Message = "Started", "the Run has started again"
	case s.phase != rqv1.RunPending:
		condition.Reason, condition.Message = "Finished", "the Run has ended"
	case s.RoomLapsed:
		condition.Reason, condition.Message = "Lapsed", fmt.Sprintf("the Run did not start again within %s; it waits as any other, by age", s.GangDeadline)
	default:
		return
	}
	s.setCondition(next, condition)
}
