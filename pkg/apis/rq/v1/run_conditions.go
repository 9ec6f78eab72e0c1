package v1

// ReasonTimedOut is the reason of the condition Finished of a Run that has run for its maxDuration, and of the condition
// Started, while that is False, of one that waits again after that (rule R22).
const ReasonTimedOut = "TimedOut"

// Condition types of a Run.
const (
	// ConditionStarted is True once every pod of the Run is bound; while False its reason says what is short.
	ConditionStarted = "Started"
	// ConditionFinished is there, and True, once the Run is Completed or Failed.
	ConditionFinished = "Finished"
	// ConditionOverdraft is True while the Run holds GPUs beyond what their payer allows (rule R8), and absent if it never
	// did.
	ConditionOverdraft = "Overdraft"
	// ConditionAtRisk is True while the activation of a Reservation may cut the Run (rule R18), and absent if none ever
	// could.
	ConditionAtRisk = "AtRisk"
	// ConditionGraceCapped is True while the Run's pods are made with a shorter grace period than its template asks for (rule
	// R37), and absent while they are not.
	ConditionGraceCapped = "GraceCapped"
	// ConditionRoomKept is True while a Run that was requeued because of a node's loss keeps the GPUs that it held, the lost
	// node's apart, until it has started again or gangDeadline after its last old pod is gone (rule R22); absent if it never was.
	ConditionRoomKept = "RoomKept"
	// ConditionReclaimed says which shards of an opportunistic Run gave their GPUs back last, and why; its time is when. It is
	// absent until one does.
	ConditionReclaimed = "Reclaimed"
	// ConditionSaveIgnored is True while the Run or one of its pods says of its work that it was saved at what is no time, or one
	// that is still to come (rule R45), and absent if none ever did.
	ConditionSaveIgnored = "SaveIgnored"
	// ConditionSuspended is True while the Run is suspended (rule R39), and absent if it never was.
	ConditionSuspended = "Suspended"
	// ConditionNodesHeldBack is True while nodes of the Run show signs of loss and are not taken for lost, since too many nodes
	// do at once (rule R25), and absent if none ever did.
	ConditionNodesHeldBack = "NodesHeldBack"
	// ConditionMaintenanceAhead is True while nodes of the Run are, or will be, out of service by plan (rule R35): when.
	ConditionMaintenanceAhead = "MaintenanceAhead"
	// ConditionDrainWaits is True while no rank of the Run can be evicted from a node that is to be emptied (rule R35): it has
	// nowhere to go, ranks are not ready, or nobody came while it had.
	ConditionDrainWaits = "DrainWaits"
	// ConditionPriorityClassMissing is True while there is no PriorityClass of the name that the Run gives, so that its
	// priority counts as 0 (rule R44), and absent if there always was.
	ConditionPriorityClassMissing = "PriorityClassMissing"
)
