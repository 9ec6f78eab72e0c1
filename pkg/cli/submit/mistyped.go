package submit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/world"
)

// known is what Runs may name, as far as whoever asks may read it.
type known struct{ types, owners []string }

// knownFor reads what Runs may name.
func knownFor(ctx context.Context, c client.Client) (k known) {
	k.types, _ = world.GPUTypes(ctx, c) // what cannot be read is not compared with
	budgets, _ := session.ReadBudgets(ctx, c)
	for i := range budgets {
		k.owners = append(k.owners, string(budgets[i].Spec.Owner))
	}
	slices.Sort(k.owners)
	k.owners = slices.Compact(k.owners)
	return k
}

// doubts says which words of a Run are perhaps mistyped: a type that no node has, and an owner who nearly has a Budget.
// Neither is wrong for certain: nodes come, and an owner may spend what its family has.
func (k *known) doubts(object *unstructured.Unstructured) (doubts []string) {
	gpuType, _, _ := unstructured.NestedString(object.Object, "spec", "resources", "gpuType")
	owner, _, _ := unstructured.NestedString(object.Object, "spec", "owner")
	if gpuType != "" && len(k.types) > 0 && !slices.Contains(k.types, gpuType) {
		meant := session.Meant(gpuType, k.types)
		if meant == "" {
			meant = "; there are " + strings.Join(k.types, ", ")
		}
		doubts = append(doubts, fmt.Sprintf("no node has GPUs of type %s%s", gpuType, meant))
	}
	if owner == "" || slices.ContainsFunc(k.owners, func(has string) bool {
		return has == owner || strings.HasPrefix(owner, has+":") || strings.HasPrefix(has, owner+":")
	}) {
		return doubts
	}
	if meant := session.Meant(owner, k.owners); meant != "" {
		doubts = append(doubts, fmt.Sprintf("no Budget has the owner %s%s", owner, meant))
	}
	return doubts
}

// warn tells of words that are perhaps mistyped.
func (s *submission) warn(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) {
	if s.dryRun == "client" || !slices.ContainsFunc(objects, isRun) {
		return
	}
	k := knownFor(ctx, c)
	for _, object := range objects {
		if isRun(object) {
			for _, doubt := range k.doubts(object) {
				fmt.Fprintf(s.ErrOut, "Warning: Run %s: %s\n", object.GetName(), doubt)
			}
		}
	}
}

func isRun(object *unstructured.Unstructured) bool { return object.GetKind() == "Run" }
