package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// EndCause is what caused the end of a pod (rule R33).
//
// +kubebuilder:validation:Enum=Node;Program;User;Scheduler
type EndCause string

// Values of EndCause.
const (
	// CauseNode: the node, or what keeps it, ended the pod or turned it away. The rank is lost, and the Run is not to blame.
	CauseNode EndCause = "Node"
	// CauseProgram: what runs in the pod ended by itself, or broke a limit of its own.
	CauseProgram EndCause = "Program"
	// CauseUser: somebody deleted the pod, or the template bounds how long it may run.
	CauseUser EndCause = "User"
	// CauseScheduler: the scheduler ended the pod, by a cut or by its rules.
	CauseScheduler EndCause = "Scheduler"
)

// MostDeaths is how many of its ranks' ends a Run's status lists.
const MostDeaths = 16

// RunDeath is how a rank ended that failed.
type RunDeath struct {
	// pod that ended, by its UID, because names are reused.
	Pod types.UID `json:"pod"`
	// index of the rank, from 0.
	// +kubebuilder:validation:Minimum=0
	Index int32 `json:"index"`
	// node that the pod was bound to.
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`
	// cause of its end.
	Cause EndCause `json:"cause"`
	// sign is the word that Kubernetes wrote on the pod, such as OOMKilled or NodeShutdown.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Sign string `json:"sign,omitempty"`
	// container that failed first; absent when none did.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Container string `json:"container,omitempty"`
	// exitCode of that container.
	// +optional
	ExitCode int32 `json:"exitCode,omitempty"`
	// message that Kubernetes or the container left, shortened.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
	// at is when it ended.
	At metav1.Time `json:"at"`
	// restarts is how often the kubelet had restarted containers of the pod by then, including this time; absent if it had not.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Restarts int32 `json:"restarts,omitempty"`
	// incident is the number of the incident that the death belongs to, from 1 (rule R34); absent if the program did not cause
	// it or is not restarted.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Incident int32 `json:"incident,omitempty"`
	// first says that the death was the first of its incident, which alone is blamed.
	// +optional
	First bool `json:"first,omitempty"`
	// action is what is done about it; absent if the Run ends with it or the program did not cause it.
	// +optional
	Action RestartAction `json:"action,omitempty"`
}

// RestartAction is what is done about a rank that has died because of its program (rule R34).
//
// +kubebuilder:validation:Enum=Restart;Move;Fail
type RestartAction string

// Values of RestartAction.
const (
	// ActionRestart: the rank is started again, where it was the first time.
	ActionRestart RestartAction = "Restart"
	// ActionMove: the rank goes to a spare or another node, since its node is bad.
	ActionMove RestartAction = "Move"
	// ActionFail: the Run ends, since it would be of no use to try again.
	ActionFail RestartAction = "Fail"
)

// DefaultRestarts is how often a Run with a checkpoint is restarted that does not say so itself.
const DefaultRestarts = 3

// RunRestarts says what is done when ranks die because of their program (rule R34).
type RunRestarts struct {
	// limit is how many incidents the Run survives if they follow each other without a checkpoint interval (10 minutes if none
	// is declared) of quiet. All deaths from the first until all ranks are ready again, and for at least 10 minutes, are one
	// incident; a rank that was ready again and dies begins another one. With 0 the first death ends the Run. Default: 3 with a
	// checkpoint, else 0.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self >= 0 && self <= 100`,message=`runtime.restarts.limit must be 0 to 100`
	Limit *int32 `json:"limit,omitempty"`
	// onExitCodes maps exit codes, 1 to 255, of the container that failed first to what is done: Restart, Move (the code means
	// that the node is bad) or Fail (trying again would not help). Default: Restart.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule=`self.all(code, code.matches('^([1-9]|[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])$'))`,message=`runtime.restarts.onExitCodes must name exit codes from 1 to 255, such as "42": Fail`
	OnExitCodes map[string]RestartAction `json:"onExitCodes,omitempty"`
}

// RunRestartsStatus tells of the incidents in which ranks of a Run died by their program's doing (rule R34).
type RunRestartsStatus struct {
	// incidents is how many there have been, each with one restart; the last restart may be in progress.
	// +kubebuilder:validation:Minimum=1
	Incidents int32 `json:"incidents"`
	// counted is how many of the latest incidents count against runtime.restarts.limit: those without a checkpoint interval of
	// quiet between them.
	// +kubebuilder:validation:Minimum=1
	Counted int32 `json:"counted"`
	// began is when the first rank of the last incident died.
	Began metav1.Time `json:"began"`
	// ready is when all ranks were ready again after that; absent while they are not.
	// +optional
	Ready *metav1.Time `json:"ready,omitempty"`
}
