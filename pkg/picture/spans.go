package picture

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// order is the order in which a node's GPUs are drawn.
var order = []Use{Active, Spare, Shard, Leaving, Foreign, Free, Broken}

// addPods adds the GPUs that pods without a GPU lease use.
func addPods(held map[string][]use, o *Objects, args *config.Args) {
	paid := leased(o.Leases)
	for _, pod := range o.Pods {
		if pod.Spec.NodeName == "" || paid[pod.UID] || rank.Ended(pod) {
			continue
		}
		gpus := rank.PodGPUs(&pod.Spec, args.GPUResource...)
		if gpus == 0 {
			continue
		}
		by := use{use: Foreign, gpus: gpus}
		if run := pod.Labels[rqv1.LabelRun]; run != "" {
			by.use, by.run = Leaving, pod.Namespace+"/"+run
		}
		held[pod.Spec.NodeName] = append(held[pod.Spec.NodeName], by)
	}
}

// spansOf divides a node's GPUs among their uses. Shards take GPUs that nobody holds, and beyond those the spares'
// ones. Where more is held than the node has, as when a device has failed, all that is held is drawn all the same.
func spansOf(node *corev1.Node, args *config.Args, held []use) []Span {
	spans := merged(held)
	total, allocatable := args.GPUResource.Sum(node.Status.Capacity), args.GPUResource.Sum(node.Status.Allocatable)
	free := allocatable
	shards := 0
	for i := range spans {
		if spans[i].Use == Shard {
			shards += spans[i].GPUs
		} else {
			free -= spans[i].GPUs
		}
	}
	if under := shards - max(0, free); under > 0 {
		spans = onSpares(spans, under)
	}
	used := 0
	for i := range spans {
		used += spans[i].GPUs
	}
	if free := allocatable - used; free > 0 {
		spans = append(spans, Span{Use: Free, GPUs: free})
		used = allocatable
	}
	if broken := total - used; broken > 0 {
		spans = append(spans, Span{Use: Broken, GPUs: broken})
	}
	return spans
}

// merged returns what is held in order, what is alike together.
func merged(held []use) []Span {
	spans := []Span{}
	for _, u := range held {
		i := slices.IndexFunc(spans, func(s Span) bool { return s.Use == u.use && s.Run == u.run })
		if i < 0 {
			spans = append(spans, Span{Use: u.use, Run: u.run, GPUs: u.gpus})
			continue
		}
		spans[i].GPUs += u.gpus
	}
	slices.SortFunc(spans, func(a, b Span) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Use), slices.Index(order, b.Use)), strings.Compare(a.Run, b.Run))
	})
	return spans
}

// onSpares lays so many GPUs of shards, of the last ones, over those of spares, of the first ones. Shards for which
// there are no spares stay as they are.
func onSpares(spans []Span, gpus int) []Span {
	shards := slices.IndexFunc(spans, func(s Span) bool { return s.Use == Shard })
	out := slices.Clone(spans[:shards])
	for last := len(spans) - 1; last >= shards && gpus > 0; last-- {
		if spans[last].Use != Shard {
			continue
		}
		move := min(gpus, spans[last].GPUs)
		laid := lay(&out, spans[last].Run, move)
		spans[last].GPUs -= laid
		gpus -= move
	}
	for _, s := range spans[shards:] {
		if s.GPUs > 0 {
			out = append(out, s)
		}
	}
	return out
}

// lay gives a tenant so many GPUs of spares that have none, and returns how many there were.
func lay(spans *[]Span, tenant string, gpus int) int {
	laid := 0
	for i := 0; i < len(*spans) && laid < gpus; i++ {
		s := &(*spans)[i]
		if s.Use != Spare || s.Tenant != "" {
			continue
		}
		part := min(s.GPUs, gpus-laid)
		laid += part
		if part == s.GPUs {
			s.Tenant = tenant
			continue
		}
		s.GPUs -= part
		*spans = slices.Insert(*spans, i, Span{Use: Spare, Run: s.Run, Tenant: tenant, GPUs: part})
		i++
	}
	return laid
}
