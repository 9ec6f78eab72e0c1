package integration

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// People in the sample namespace rai. Ann and Mia belong to one team each.
var (
	ann = person("ann", "rai")
	mia = person("mia", "mm")
	// Dan edits everything in rai, and spends as nobody.
	dan = person("dan")
	// Eve is from mm, and edits everything in rai too.
	eve = person("eve")
	// Fay may spend as both teams in rai.
	fay = person("fay")
	// Gus may spend as anybody anywhere.
	gus = person("gus")
)

// spenders sets up who may spend as whom.
func spenders(t *testing.T) {
	t.Helper()
	sampleTeams(t)
	use := func(names ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: []string{rqv1.GroupName}, Resources: []string{"owners"}, ResourceNames: names,
			Verbs: []string{"use"}}}
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "rai", Name: "guest-mm"}, Rules: use("org:ai:mm")}
	all := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "spend-as-anybody"}, Rules: append(use(),
		rbacv1.PolicyRule{APIGroups: []string{rqv1.GroupName}, Resources: []string{"runs"}, Verbs: []string{"create"}})}
	install(t, role, all)
	bindEverywhere(t, "gus", all.Name)
	for _, user := range []string{"dan", "eve", "fay"} {
		bindRole(t, user, "rai", "ClusterRole", "edit")
	}
	bindRole(t, "fay", "rai", "Role", "spend-as-rai")
	for _, user := range []rest.ImpersonationConfig{eve, fay} {
		bindRole(t, user.UserName, "rai", "Role", role.Name)
		waitAllowed(t, user, access{"use", rqv1.GroupName, "owners", "rai", "org:ai:mm"})
		waitAllowed(t, user, access{"patch", rqv1.GroupName, "runs", "rai", "run"})
	}
	waitAllowed(t, fay, access{"use", rqv1.GroupName, "owners", "rai", "org:ai:rai"})
	waitAllowed(t, dan, access{"patch", rqv1.GroupName, "runs", "rai", "run"})
	waitAllowed(t, gus, access{"use", rqv1.GroupName, "owners", "mm", "org:x"})
	policyEnforced(t, "jobtree-owners", func() error {
		return actAs(t, dan).Create(t.Context(), runAs("rai", "probe", "org:ai:rai"), client.DryRunAll)
	})
}

// runAs is a Run that spends as an owner.
func runAs(namespace, name string, owner rqv1.Owner) *rqv1.Run {
	return &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: rqv1.RunSpec{
		Owner: owner, Resources: rqv1.RunResources{GPUType: "H100-80GB", TotalGPUs: 16},
		Malleable: &rqv1.RunMalleable{MinTotalGPUs: 8, MaxTotalGPUs: 32, StepGPUs: 8},
		Funding:   &rqv1.RunFunding{AllowBorrow: true, Sponsors: []rqv1.Owner{"org:ai:vision"}},
	}}
}

func TestWhoMaySpend(t *testing.T) {
	spenders(t)
	t.Run("create", createAsOwners)
	t.Run("update", updateAsOwners)
	t.Run("metadata", metadataIsFree)
}

func createAsOwners(t *testing.T) {
	for _, c := range []struct {
		name      string
		as        rest.ImpersonationConfig
		namespace string
		owner     rqv1.Owner
		want      []string // in the refusal; none when the Run is accepted
	}{
		{"own team", ann, "rai", "org:ai:rai", nil},
		{"other team", mia, "mm", "org:ai:mm", nil},
		{"two owners in one namespace", fay, "rai", "org:ai:mm", nil},
		{"by a ClusterRoleBinding", gus, "mm", "org:whoever", nil},
		{"administrator", rest.ImpersonationConfig{}, "mm", "org:whoever", nil},
		{"somebody else", ann, "rai", "org:ai:mm", []string{
			"spec.owner: user ann may not spend as org:ai:mm in namespace rai",
			"kubectl auth can-i use owners.rq.davidlangworthy.io/org:ai:mm -n rai",
			"ask an administrator of namespace rai for a RoleBinding to a Role with verb use on " +
				"owners.rq.davidlangworthy.io org:ai:mm",
		}},
		{"below one's own owner", ann, "rai", "org:ai:rai:sys", []string{"user ann may not spend as org:ai:rai:sys"}},
		{"above one's own owner", ann, "rai", "org:ai", []string{"user ann may not spend as org:ai in"}},
		{"beside one's own owner", ann, "rai", "org:ai:rail", []string{"user ann may not spend as org:ai:rail in"}},
		{"own owner in a namespace of others", person("cat", "rai", "mm"), "mm", "org:ai:rai", []string{
			"user cat may not spend as org:ai:rai in namespace mm", "-n mm"}},
		{"edit without use", dan, "rai", "org:ai:rai", []string{"user dan may not spend as org:ai:rai"}},
		{"the scheduler itself", schedulerAccount, "rai", "org:ai:rai", []string{
			"jobtree-scheduler may not spend as org:ai:rai"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := runAs(c.namespace, "created", c.owner)
			err := actAs(t, c.as).Create(t.Context(), run)
			admin := actAs(t, rest.ImpersonationConfig{})
			if len(c.want) == 0 {
				if err != nil {
					t.Fatal(err)
				}
				remove(t, admin, run)
				return
			}
			refused(t, "create", err, c.want...)
			if err := admin.Get(t.Context(), client.ObjectKeyFromObject(run), run); !apierrors.IsNotFound(err) {
				t.Errorf("the Run that was refused: %v", err)
			}
		})
	}
}

func updateAsOwners(t *testing.T) {
	const (
		toMM     = `{"spec":{"owner":"org:ai:mm"}}`
		wider    = `{"spec":{"malleable":{"desiredTotalGPUs":32}}}`
		sponsors = `{"spec":{"funding":{"sponsors":["org:ai:mm","org:ai:vision"]}}}`
		longer   = `{"spec":{"runtime":{"maxDuration":"9h"}}}`
	)
	mayNot := func(user string) []string {
		return []string{
			"spec: user " + user + " may not change a Run that spends as org:ai:rai in namespace rai",
			"kubectl auth can-i use owners.rq.davidlangworthy.io/org:ai:rai -n rai", "ask an administrator of namespace rai",
		}
	}
	for _, c := range []struct {
		name  string
		as    rest.ImpersonationConfig
		patch string
		want  []string
	}{
		{"own width", ann, wider, nil},
		{"own sponsors", ann, sponsors, nil},
		{"from one's own to another's owner", ann, toMM,
			[]string{"spec.owner: user ann may not spend as org:ai:mm in namespace rai"}},
		{"from another's to one's own owner", eve, toMM, mayNot("eve")},
		{"between two owners of one's own", fay, toMM, nil},
		{"another's width", dan, wider, mayNot("dan")},
		{"another's sponsors", dan, sponsors, mayNot("dan")},
		{"another's duration", eve, longer, mayNot("eve")},
		{"another's owner", dan, toMM, []string{"may not spend as org:ai:mm"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			admin := actAs(t, rest.ImpersonationConfig{})
			run := runAs("rai", "updated", "org:ai:rai")
			if err := admin.Create(t.Context(), run); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { remove(t, admin, run) })
			err := actAs(t, c.as).Patch(t.Context(), run.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(c.patch)))
			after := &rqv1.Run{}
			if err := admin.Get(t.Context(), client.ObjectKeyFromObject(run), after); err != nil {
				t.Fatal(err)
			}
			changed := after.ResourceVersion != run.ResourceVersion
			if len(c.want) == 0 {
				if err != nil || !changed {
					t.Errorf("changed %v, %v", changed, err)
				}
				return
			}
			refused(t, c.patch, err, c.want...)
			if changed {
				t.Errorf("%s was refused and has changed the Run", c.patch)
			}
		})
	}
}

// metadataIsFree edits what costs nobody anything, without the right to spend, and deletes the Run.
func metadataIsFree(t *testing.T) {
	run := runAs("rai", "labelled", "org:ai:rai")
	if err := actAs(t, ann).Create(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	by := actAs(t, dan)
	for _, patch := range []string{
		`{"metadata":{"labels":{"sweep":"7"},"annotations":{"note":"seen"}}}`,
		`{"metadata":{"finalizers":["example.com/mine"]}}`,
		`{"metadata":{"finalizers":null}}`,
		`{"spec":{"owner":"org:ai:rai"}}`,
	} {
		if err := by.Patch(t.Context(), run, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Errorf("%s: %v", patch, err)
		}
	}
	if err := by.Update(t.Context(), run); err != nil {
		t.Error(err)
	}
	if err := by.Delete(t.Context(), run); err != nil {
		t.Error(err)
	}
}
