package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// EndCause is by whose doing a pod ended (rule R33).
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
	// pod that ended, by its UID: names are used again.
	Pod types.UID `json:"pod"`
	// index of the rank, from 0.
	// +kubebuilder:validation:Minimum=0
	Index int32 `json:"index"`
	// node that the pod was bound to.
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`
	// cause is by whose doing it ended.
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
}
