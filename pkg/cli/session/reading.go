package session

import (
	"cmp"
	"context"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// ReadBudgets returns all Budgets, ordered by name.
func ReadBudgets(ctx context.Context, c client.Client) ([]rqv1.Budget, error) {
	var list rqv1.BudgetList
	if err := c.List(ctx, &list); err != nil {
		return nil, err
	}
	return list.Items, nil
}

// ReadReservations returns those of all namespaces, or those of one with the error that kept the others away.
func ReadReservations(ctx context.Context, c client.Client, namespace string) ([]rqv1.Reservation, error) {
	var list rqv1.ReservationList
	err := c.List(ctx, &list)
	if err != nil && c.List(ctx, &list, client.InNamespace(namespace)) != nil {
		return nil, err
	}
	return list.Items, err
}

// ReadLeases returns the GPU leases of a namespace (of all that may be read when it is empty), of one Run when one is
// named, ordered by Run, start and place.
func (s *Session) ReadLeases(ctx context.Context, c client.Client, namespace string, run []string,
	state client.ListOption) ([]rqv1.Lease, error) {
	options := []client.ListOption{state}
	if len(run) > 0 {
		options = append(options, client.MatchingLabels{rqv1.LabelRun: run[0]})
	}
	var list rqv1.LeaseList
	if err := s.List(ctx, c, namespace, &list, options...); err != nil {
		return nil, err
	}
	list.Items = asPaid(list.Items)
	slices.SortFunc(list.Items, func(a, b rqv1.Lease) int {
		return cmp.Or(
			strings.Compare(a.Namespace, b.Namespace),
			strings.Compare(a.Spec.RunRef.Name, b.Spec.RunRef.Name),
			a.Spec.Start.Truncate(1e9).Compare(b.Spec.Start.Truncate(1e9)),
			cmp.Compare(a.Spec.GroupIndex, b.Spec.GroupIndex),
			strings.Compare(NodesOf(&a), NodesOf(&b)),
			a.Spec.Start.Compare(b.Spec.Start.Time), // what a GPU lease makes room for comes after it
			strings.Compare(a.Name, b.Name),
		)
	})
	return list.Items, nil
}

// asPaid returns GPU leases with one open for each pod: of one that somebody else pays for two may be for a moment.
func asPaid(leases []rqv1.Lease) []rqv1.Lease {
	read := make([]*rqv1.Lease, len(leases))
	for i := range leases {
		read[i] = &leases[i]
	}
	if len(rank.Unfinished(read)) == 0 {
		return leases
	}
	paid := rank.AsPaid(read)
	out := make([]rqv1.Lease, len(paid))
	for i := range paid {
		out[i] = *paid[i]
	}
	return out
}

// OwnerMatches compares an owner with a pattern: an exact owner, a prefix that ends in "*" (as in rule R4), or
// nothing, which matches every owner.
func OwnerMatches(pattern string, owner rqv1.Owner) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(string(owner), prefix)
	}
	return pattern == "" || pattern == string(owner)
}

// Selectors of GPU leases by state, which the server evaluates.
var (
	LeasesOpen   = client.MatchingFieldsSelector{Selector: fields.OneTermNotEqualSelector("status.closed", "true")}
	LeasesClosed = client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("status.closed", "true")}
)

// NodesOf lists the nodes of a GPU lease.
func NodesOf(lease *rqv1.Lease) string {
	names := make([]string, len(lease.Spec.Slice.Nodes))
	for i, node := range lease.Spec.Slice.Nodes {
		names[i] = node.Name
	}
	return strings.Join(names, ",")
}

// Whoami is the name under which the API server knows who asks, or words for somebody whom it does not name.
func Whoami(ctx context.Context, c client.Client) string {
	return cmp.Or(Username(ctx, c), "an administrator")
}

// Username is the name under which the API server knows who asks; empty where it does not tell.
func Username(ctx context.Context, c client.Client) string {
	var review authenticationv1.SelfSubjectReview
	if err := c.Create(ctx, &review); err != nil {
		return ""
	}
	return review.Status.UserInfo.Username
}

// Me is the name under which the API server knows who asks, for commands that cannot do without it.
func (s *Session) Me(ctx context.Context, c client.Client) (string, error) {
	who := Username(ctx, c)
	if who == "" {
		return "", Fail(ExitError, "the API server does not tell who you are: leave out --mine")
	}
	return who, nil
}
