package picture

import (
	"cmp"
	"slices"
	"strings"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/published"
)

// Holder is a Run that is on nodes, as NAMESPACE/NAME.
type Holder struct {
	Run string `json:"run"`
	// GPUs is how many it holds or uses, and Spare how many of them stand by for it.
	GPUs  int `json:"gpus"`
	Spare int `json:"spare,omitempty"`
}

// Holders returns the Runs that are on some nodes, the one with most GPUs first.
func Holders(nodes []Node) []Holder {
	found := map[string]*Holder{}
	add := func(run string, gpus, spare int) {
		if run == "" {
			return
		}
		if found[run] == nil {
			found[run] = &Holder{Run: run}
		}
		found[run].GPUs += gpus
		found[run].Spare += spare
	}
	for i := range nodes {
		for _, s := range nodes[i].Spans {
			spare := 0
			if s.Use == Spare {
				spare = s.GPUs
			}
			add(s.Run, s.GPUs, spare)
			add(s.Tenant, s.GPUs, 0)
		}
	}
	out := make([]Holder, 0, len(found))
	for _, h := range found {
		out = append(out, *h)
	}
	slices.SortFunc(out, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.GPUs, a.GPUs), strings.Compare(a.Run, b.Run))
	})
	return out
}

// Promise is the start of a Run that waits, as NAMESPACE/NAME.
type Promise struct {
	Run   string    `json:"run"`
	At    time.Time `json:"at"`
	Nodes []string  `json:"nodes"`
}

// Promises returns the starts to come, by time.
func Promises(reservations []*rqv1.Reservation) []Promise {
	out := []Promise{}
	for _, r := range reservations {
		if !r.Ended() && r.Spec.IntendedSlice != nil {
			out = append(out, Promise{Run: r.Spec.RunRef.Namespace + "/" + r.Spec.RunRef.Name, At: r.Spec.EarliestStart.Time,
				Nodes: slices.Sorted(slices.Values(r.Spec.IntendedSlice.Nodes))})
		}
	}
	slices.SortFunc(out, func(a, b Promise) int { return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Run, b.Run)) })
	return out
}

// TakesWork reports whether a node may be given anything new.
func (n *Node) TakesWork() bool { return n.State.TakesWork() && n.LeftOut == "" }

// Domains adds nodes up, in the order of what the scheduler publishes. How much is promised nodes do not tell.
func Domains(nodes []Node) []published.Domain {
	out := []published.Domain{}
	for i := range nodes {
		n := &nodes[i]
		at := slices.IndexFunc(out, func(d published.Domain) bool {
			return d.GPUType == n.GPUType && slices.Equal(d.Values, n.Domain)
		})
		if at < 0 {
			at = len(out)
			out = append(out, published.Domain{Values: n.Domain, GPUType: n.GPUType})
		}
		d := &out[at]
		d.Nodes++
		d.GPUs += n.GPUs() - n.GPUs(Broken)
		if n.TakesWork() {
			d.Free += n.GPUs(Free)
		} else {
			d.OutOfService++
		}
	}
	slices.SortFunc(out, published.Compare)
	return out
}
