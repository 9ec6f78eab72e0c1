package explain

import (
	"cmp"
	"slices"
	"strings"
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
	Reservations []view.Promise `json:"reservations,omitempty"`
	AtRisk       []view.Risk    `json:"atRisk,omitempty"`
	CutBy        []cutBy        `json:"cutBy,omitempty"`
	// Holds is what the Run holds now, Gave what it has given back.
	Holds  []holding `json:"holds,omitempty"`
	Gave   []givenUp `json:"gave,omitempty"`
	Events []event   `json:"events,omitempty"`
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

// event is an Event about the Run.
type event struct {
	Time    metav1.Time `json:"time"`
	Type    string      `json:"type"`
	Reason  string      `json:"reason"`
	Message string      `json:"message"`
	Count   int32       `json:"count"`
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
}

// explain tells a Run's story.
func explain(run *rqv1.Run, from evidence) explanation {
	e := explanation{
		Run:       run.Name,
		Namespace: run.Namespace,
		Owner:     run.Spec.Owner,
		Phase:     view.PhaseOf(run),
		Message:   run.Status.Message,
		Looked:    view.LookedAt(run),
		Asks:      requestOf(run),
		Width:     run.Status.Width,
		Waits:     view.WaitOf(run, from.now),
		At:        metav1.NewTime(from.now),
		Story:     storyOf(run),
		Events:    eventsOf(from.events),
	}
	// of an earlier Run of the same name
	earlier := func(lease rqv1.Lease) bool { return lease.Spec.RunRef.UID != run.UID }
	leases := slices.DeleteFunc(slices.Clone(from.leases), earlier)
	e.Story = slices.Concat(e.Story, lossesOf(leases, from.nodes.lost), toldByLeases(leases))
	e.reserve(run, from)
	for i := range leases {
		if lease := &leases[i]; lease.Status.Closed {
			e.Gave = addGivenUp(e.Gave, lease)
		} else {
			e.Holds = addHolding(e.Holds, lease, from.nodes.domains)
		}
	}
	slices.SortStableFunc(e.Holds, func(a, b holding) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), strings.Compare(string(a.Role), string(b.Role)),
			strings.Compare(a.Domain, b.Domain))
	})
	slices.SortFunc(e.Gave, func(a, b givenUp) int { return strings.Compare(string(a.Reason), string(b.Reason)) })
	e.Spares, e.Shards = sparesHeld(run, e.Holds), shardsOf(run, leases)
	return e
}

func requestOf(run *rqv1.Run) request {
	r := request{GPUs: run.Spec.Resources.TotalGPUs, GPUType: run.Spec.Resources.GPUType,
		SparesPerGroup: run.Spec.GroupSpares(),
		Malleable:      run.Spec.Malleable, Opportunistic: run.Spec.Opportunistic}
	if perPod := run.Spec.Resources.GPUsPerPod; perPod != nil {
		r.GPUsPerPod = *perPod
	}
	if run.Spec.Locality != nil && run.Spec.Locality.GroupGPUs != nil {
		r.GroupGPUs = *run.Spec.Locality.GroupGPUs
	}
	return r
}
