package world

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/picture"
	"github.com/davidlangworthy/jobtree/pkg/published"
)

// Fleet is the fleet as whoever asks may see it, in the way in which it is printed as data.
type Fleet struct {
	// Levels are the node labels whose values name a domain, widest first.
	Levels []string `json:"levels"`
	// Domains are the numbers of each domain and GPU type.
	Domains []published.Domain `json:"domains"`
	// Nodes are who is on which node, Runs those who are, and Promises who will be; absent where nodes may not be read.
	Nodes    []picture.Node    `json:"nodes,omitempty"`
	Runs     []picture.Holder  `json:"runs,omitempty"`
	Promises []picture.Promise `json:"promises,omitempty"`
}

// ReadFleet reads the nodes and who is on them or, for who may not, the numbers that the scheduler has published.
// unread says what may not be read, or has been guessed.
func ReadFleet(ctx context.Context, c client.Client, now time.Time) (f Fleet, unread []string, err error) {
	data, lacks, err := public(ctx, c)
	if err != nil {
		return Fleet{}, nil, err
	}
	args, numbers, err := publishedOrDefault(data, lacks)
	if err != nil {
		return Fleet{}, nil, err
	}
	var nodes corev1.NodeList
	err = c.List(ctx, &nodes)
	switch {
	case apierrors.IsForbidden(err) && lacks == "":
		return Fleet{Levels: numbers.Levels, Domains: numbers.Domains}, []string{"nodes and the Runs on them; that needs " +
			"the right to list nodes and the GPU leases of all namespaces"}, nil
	case apierrors.IsForbidden(err):
		return Fleet{}, nil, session.Fail(session.ExitError, "%s; nor could the scheduler's numbers be read: %s",
			session.Refusal(err), lacks)
	case err != nil:
		return Fleet{}, nil, err
	}
	if lacks != "" {
		unread = append(unread, "the scheduler's configuration: its defaults are assumed; "+lacks)
	}
	o := picture.Objects{Nodes: pointers(nodes.Items)}
	more, err := readAround(ctx, c, &o)
	if err != nil {
		return Fleet{}, nil, err
	}
	f = Fleet{Levels: picture.Levels(args), Nodes: picture.FleetAt(&o, args, now, true),
		Promises: picture.Promises(o.Reservations)}
	f.Domains, f.Runs = picture.Domains(f.Nodes), picture.Holders(f.Nodes)
	f.promised(numbers.Domains)
	return f, append(unread, more...), nil
}

// publishedOrDefault returns what the scheduler has published, or the defaults and no numbers if it lacks.
func publishedOrDefault(data map[string]string, lacks string) (*config.Args, published.Fleet, error) {
	if lacks != "" {
		args, err := config.Parse(nil)
		return args, published.Fleet{}, err
	}
	numbers, err := published.FleetOf(data)
	if err != nil {
		return nil, published.Fleet{}, err
	}
	args, err := published.Args(data)
	return args, numbers, err
}

// promised takes over how much of each domain is promised, which nodes do not tell.
func (f *Fleet) promised(numbers []published.Domain) {
	for i := range f.Domains {
		d := &f.Domains[i]
		at := slices.IndexFunc(numbers, func(p published.Domain) bool {
			return p.GPUType == d.GPUType && slices.Equal(p.Values, d.Values)
		})
		if at >= 0 {
			d.Promised = numbers[at].Promised
		}
	}
}

// readAround reads what is on nodes, and what will be.
func readAround(ctx context.Context, c client.Client, o *picture.Objects) (unread []string, err error) {
	var leases rqv1.LeaseList
	var pods corev1.PodList
	var reservations rqv1.ReservationList
	open := client.MatchingFieldsSelector{Selector: fields.OneTermNotEqualSelector("status.closed", "true")}
	bound := client.MatchingFieldsSelector{Selector: fields.ParseSelectorOrDie(
		"status.phase!=Succeeded,status.phase!=Failed,spec.nodeName!=")}
	for _, of := range []struct {
		into    client.ObjectList
		what    string
		options []client.ListOption
	}{{&leases, "GPU leases of all namespaces; their GPUs are shown as free", []client.ListOption{open}},
		{&reservations, "Reservations of all namespaces; promised GPUs are not marked", nil},
		{&pods, "pods of all namespaces; GPUs of pods that are not jobtree's are shown as free",
			[]client.ListOption{bound}}} {
		err := c.List(ctx, of.into, of.options...)
		switch {
		case apierrors.IsForbidden(err):
			unread = append(unread, of.what)
		case err != nil:
			return nil, err
		}
	}
	o.Leases, o.Pods, o.Reservations = pointers(leases.Items), pointers(pods.Items), pointers(reservations.Items)
	return unread, nil
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}
