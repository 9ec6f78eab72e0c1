package explain

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// explanation says why a Run is where it is. It is what "kubectl runs explain" prints, as text or as data.
type explanation struct {
	Run       string        `json:"run"`
	Namespace string        `json:"namespace"`
	Owner     rqv1.Owner    `json:"owner"`
	Phase     rqv1.RunPhase `json:"phase"`
	Message   string        `json:"message,omitempty"`
	// Suspended says that the Run waits because it is suspended, Forecast when it would start, and Ready how many ranks
	// of one that runs are ready.
	Suspended bool              `json:"suspended,omitempty"`
	Forecast  *rqv1.RunForecast `json:"forecast,omitempty"`
	Ready     int32             `json:"ready,omitempty"`
	// Attempt is how often the Run has been sent back to wait, Timeouts how often since its maxDuration was over, and
	// PlaceSince since when it has its place in line where that is not its age.
	Attempt    int32             `json:"attempt,omitempty"`
	Timeouts   *rqv1.RunTimeouts `json:"timeouts,omitempty"`
	PlaceSince *metav1.Time      `json:"placeSince,omitempty"`
	// Maintenance says which of the Run's nodes are to be out of service, and when.
	Maintenance string `json:"maintenance,omitempty"`
	// Looked is false until the scheduler has looked at the Run as it is now.
	Looked bool    `json:"looked"`
	Asks   request `json:"asks"`
	// Width is what the Run has and tends to, Spares what stands by for it, Shards what runs of an opportunistic Run.
	Width  *rqv1.RunWidth `json:"width,omitempty"`
	Spares *spares        `json:"spares,omitempty"`
	Shards *shards        `json:"shards,omitempty"`
	Waits  *view.Waiting  `json:"waits,omitempty"`
	// At is when this was so. Story holds the moments of the Run's life, in order; those after At are still to come.
	At    metav1.Time `json:"at"`
	Story []moment    `json:"story"`
	// Reservations of the Run, oldest first; AtRisk and CutBy are what those of others may do to it, and have done.
	// AtRiskTotal is how many there are that may cut it, of which the first are listed.
	Reservations []view.Promise `json:"reservations,omitempty"`
	AtRisk       []view.Risk    `json:"atRisk,omitempty"`
	AtRiskTotal  int32          `json:"atRiskTotal,omitempty"`
	CutBy        []cutBy        `json:"cutBy,omitempty"`
	// Holds is what the Run holds now, Gave what it has given back.
	Holds []holding `json:"holds,omitempty"`
	Gave  []givenUp `json:"gave,omitempty"`
	// Used is what the Run has used so far, or until it ended; nil for one that has held nothing.
	Used *used `json:"used,omitempty"`
	// Lost is the work that the Run has lost, by whose doing.
	Lost   []lostWork `json:"lost,omitempty"`
	Events []event    `json:"events,omitempty"`
	// Unread says what could not be read, and so is missing above.
	Unread []string `json:"unread,omitempty"`
}

// request is what a Run asks for.
type request struct {
	GPUs       int32  `json:"gpus"`
	GPUType    string `json:"gpuType"`
	GPUsPerPod int32  `json:"gpusPerPod,omitempty"`
	GroupGPUs  int32  `json:"groupGPUs,omitempty"`
	// SparesPerGroup is how many GPUs are to stand by for each group.
	SparesPerGroup int32 `json:"sparesPerGroup,omitempty"`
	// Malleable is the range of widths of a Run that may change its width.
	Malleable     *rqv1.RunMalleable `json:"malleable,omitempty"`
	Opportunistic bool               `json:"opportunistic,omitempty"`
	// PriorityClass orders the Run among those of its owner, and Priority is that class's value.
	PriorityClass string `json:"priorityClass,omitempty"`
	Priority      *int32 `json:"priority,omitempty"`
}

// moment is one step of a Run's life.
type moment struct {
	Time    metav1.Time `json:"time"`
	What    string      `json:"what"`
	Reason  string      `json:"reason,omitempty"`
	Message string      `json:"message,omitempty"`
	// Leases is what befell GPU leases, when that is what the moment is about.
	Leases *view.Happening `json:"leases,omitempty"`
}

// holding is what one group of a Run holds in one domain from one payer.
type holding struct {
	Group    int32          `json:"group"`
	Role     rqv1.LeaseRole `json:"role"`
	Domain   string         `json:"domain,omitempty"`
	Nodes    []string       `json:"nodes"`
	GPUs     int32          `json:"gpus"`
	Budget   string         `json:"budget"`
	Envelope string         `json:"envelope"`
	Payer    rqv1.Owner     `json:"payer"`
}

// givenUp sums the closed GPU leases of one reason.
type givenUp struct {
	Reason rqv1.ClosureReason `json:"reason"`
	Leases int                `json:"leases"`
	GPUs   int32              `json:"gpus"`
	Last   metav1.MicroTime   `json:"last"`
}

// used is what a Run has used: the time from its first start until its last end, or until now, and its GPU-hours.
// Nodes are those that it held GPUs on, of a Run that holds none any more.
type used struct {
	ElapsedSeconds int64       `json:"elapsedSeconds"`
	GPUHours       json.Number `json:"gpuHours"`
	Nodes          []string    `json:"nodes,omitempty"`
}

// lostWork is work that was lost by somebody's doing.
type lostWork struct {
	Cause    rqv1.EndCause `json:"cause"`
	GPUHours string        `json:"gpuHours"`
	seconds  int64
}

// event is an Event about the Run.
type event struct {
	Time    metav1.Time `json:"time"`
	Type    string      `json:"type"`
	Reason  string      `json:"reason"`
	Message string      `json:"message"`
	Count   int32       `json:"count"`
}

// spares is what stands by for a Run that asks for spares, in GPUs. Wanted is what is to, at the width that the Run
// has.
type spares struct {
	GPUs   int32 `json:"gpus"`
	Wanted int32 `json:"wanted"`
	// ShortGroups hold GPUs and have fewer spares than they are to have.
	ShortGroups []int32 `json:"shortGroups,omitempty"`
}

// shards is what an opportunistic Run is doing: how many shards run, and how many have ended for which reason.
type shards struct {
	Running    int       `json:"running"`
	GPUs       int32     `json:"gpus"`
	WantedGPUs int32     `json:"wantedGPUs"`
	Ended      []givenUp `json:"ended,omitempty"`
}

// cutBy is what the activation of another Run's Reservation did to a Run. Reservation and For, the Run that it was
// for, are namespace/name.
type cutBy struct {
	Time        metav1.Time    `json:"time"`
	Action      rqv1.CutAction `json:"action"`
	GPUs        int32          `json:"gpus"`
	Width       *int32         `json:"width,omitempty"`
	Reservation string         `json:"reservation"`
	For         string         `json:"for"`
}

// evidence is what a Run's story is made from: the GPU leases of its name, what is said of their nodes, Reservations
// of any Run, and the Events about the Run, as read at an instant.
type evidence struct {
	now          time.Time
	leases       []rqv1.Lease
	nodes        nodeFacts
	reservations []rqv1.Reservation
	events       []corev1.Event
}

// nodeFacts is what is said of nodes, by their names: their domains, and the records of those that were found to be
// lost.
type nodeFacts struct {
	domains, lost map[string]string
	// guessed says what had to be guessed to tell the domains; empty for nothing.
	guessed string
}
