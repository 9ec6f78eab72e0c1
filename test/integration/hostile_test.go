package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// attempt is one thing that somebody tries who means no good, and what becomes of it.
type attempt struct {
	by  string
	try string
	how func(h *hostile, as client.Client) error
	// refused is what the answer says, all of it: which field or right, by which rule, and what to do.
	refused []string
	// harmless says, of an attempt that is not refused, what an observer sees instead, and after is an error until he
	// does.
	harmless string
	after    func(h *hostile) error
	// lifted undoes what would concern the neighbour as well, who is in the same namespace.
	lifted how
}

// bearable is how long it may take at most until an observer sees that an attempt has come to nothing.
const bearable = 30 * time.Second

// hostiles are the users of the attempts, by what they may do. The team's owner has a Budget of 8 GPUs that it does not
// share.
var hostiles = map[string]string{
	"tenant":    "edit in the team's namespace, use of the team's owner",
	"pupil":     "jobtree-researcher in the team's namespace, use of the team's owner",
	"editor":    "edit in the team's namespace, use of no owner",
	"pauper":    "edit in the team's namespace, use of an owner without a Budget",
	"viewer":    "view in the team's namespace",
	"chief":     "admin in the team's namespace",
	"binder":    "as tenant, and may create bindings in the team's namespace",
	"stranger":  "has logged in, nothing else",
	"treasurer": "jobtree-budget-admin",
	"auditor":   "jobtree-auditor",
	"onlooker":  "jobtree-fleet-reader, jobtree-reservation-reader and jobtree-budget-reader",
	"braker":    "jobtree-cuts-admin in the scheduler's namespace",
	"root":      "every right, and is not the scheduler",
}

// hostile is a team's site with users who mean no good, and a neighbour with a Budget of 8 GPUs of its own.
type hostile struct{ *site }

// newHostile makes a site of one domain of nodes of 8 GPUs, with all who play there.
func newHostile(t *testing.T, name string, nodes int) *hostile {
	t.Helper()
	h := &hostile{namedSite(t, liveCluster(t), name, 1, nodes, 0)}
	for _, team := range []string{"team", "next"} {
		h.fund(team, h.envelope("all", 8, func(e *rqv1.Envelope) { e.Sharing = rqv1.SharingNone }))
	}
	h.role("spend", rbacv1.PolicyRule{APIGroups: []string{rqv1.GroupName}, Resources: []string{"owners"},
		ResourceNames: []string{string(h.of("team"))}, Verbs: []string{"use"}})
	h.role("spend-nothing", rbacv1.PolicyRule{APIGroups: []string{rqv1.GroupName}, Resources: []string{"owners"},
		ResourceNames: []string{string(h.of("poor"))}, Verbs: []string{"use"}})
	h.role("bind", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"bindings", "pods/binding"},
		Verbs: []string{"create"}})
	for _, b := range [][3]string{
		{"tenant", "ClusterRole", "edit"}, {"tenant", "Role", "spend"}, {"pupil", "ClusterRole", "jobtree-researcher"},
		{"pupil", "Role", "spend"},
		{"editor", "ClusterRole", "edit"}, {"pauper", "ClusterRole", "edit"}, {"pauper", "Role", "spend-nothing"},
		{"viewer", "ClusterRole", "view"},
		{"chief", "ClusterRole", "admin"}, {"binder", "ClusterRole", "edit"}, {"binder", "Role", "spend"},
		{"binder", "Role", "bind"},
	} {
		h.create(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: b[0] + "-" + b[2]},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: b[1], Name: b[2]},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: b[0]}},
		})
	}
	eventually(t, "the users' rights", func() error { // the authorizer learns of Roles and RoleBindings one by one
		binder, pauper := h.as("binder"), h.as("pauper")
		return firstOf(
			binder.Create(t.Context(), h.teamRun("probe", 8), client.DryRunAll),
			pauper.Create(t.Context(), h.run("probe", 8, h.by("poor")), client.DryRunAll),
			h.as("pupil").Create(t.Context(), h.teamRun("probe", 8), client.DryRunAll),
			h.as("tenant").Create(t.Context(), h.teamRun("probe", 8), client.DryRunAll),
			h.as("viewer").List(t.Context(), &rqv1.RunList{}, client.InNamespace(h.namespace)),
			h.as("editor").List(t.Context(), &corev1.PodList{}, client.InNamespace(h.namespace)),
			h.as("chief").List(t.Context(), &rbacv1.RoleList{}, client.InNamespace(h.namespace)),
		)
	})
	return h
}

func (h *hostile) role(name string, rules ...rbacv1.PolicyRule) {
	h.t.Helper()
	h.create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name}, Rules: rules})
}

// as is a client that acts as one of the users.
func (h *hostile) as(user string) client.Client {
	h.t.Helper()
	config := h.AdminConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	if user == "root" {
		config.Impersonate.Groups = []string{"system:authenticated", "system:masters"}
	}
	c, err := client.New(config, client.Options{Scheme: h.api.Scheme(), Mapper: h.api.RESTMapper()})
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

// teamRun is a Run of the team.
func (h *hostile) teamRun(name string, gpus int32, changes ...func(*rqv1.Run)) *rqv1.Run {
	return h.run(name, gpus, append([]func(*rqv1.Run){h.by("team")}, changes...)...)
}

// neighbourStarts has the neighbour submit a Run for all that it has, unless it has, and returns when that runs.
func (h *hostile) neighbourStarts() {
	h.t.Helper()
	err := h.api.Create(h.t.Context(), h.run("neighbour", 8, h.by("next"), inPods(1)))
	if err != nil && !apierrors.IsAlreadyExists(err) {
		h.t.Fatal(err)
	}
	if err := waitFor(h.t, "the neighbour", bearable, func() error {
		return saying("neighbour", rqv1.RunRunning, "bound 8 GPUs")(h)
	}); err != nil {
		h.t.Errorf("the neighbour does not start: %v", err)
	}
}

// firstOf is the first of some errors.
func firstOf(errs ...error) error {
	at := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	if at < 0 {
		return nil
	}
	return errs[at]
}

// judge makes an attempt, and fails the test unless its outcome is the one that is told of it.
func (h *hostile) judge(t *testing.T, a attempt) {
	t.Helper()
	err := a.how(h, h.as(a.by))
	if len(a.refused) == 0 {
		if err != nil {
			t.Fatalf("%s: %s: %v", a.by, a.try, err)
		}
		if err := waitFor(h.t, a.try, bearable, func() error { return a.after(h) }); err != nil {
			t.Errorf("%s: %s: %v, but: %v", a.by, a.try, a.harmless, err)
		}
		return
	}
	if err == nil {
		t.Errorf("%s: %s: it gets through", a.by, a.try)
		return
	}
	for _, part := range a.refused {
		if !strings.Contains(err.Error(), h.fill(part)) {
			t.Errorf("%s: %s:\n got: %v\nwant: %s", a.by, a.try, err, h.fill(part))
		}
	}
}

// fill puts the site's names into a text.
func (h *hostile) fill(text string) string {
	return strings.NewReplacer("$TEAM", string(h.of("team")), "$NEXT", string(h.of("next")), "$ORG", string(h.owner),
		"$NS", h.namespace, "$THEIRS", h.groupRun("", "Group", "theirs"),
		"$FLAVOR", h.flavor, "$NODE", h.namespace+"-d0-0").Replace(text)
}

// TestHostileList compares the list of all attempts with the one in testdata, which is there to be read.
func TestHostileList(t *testing.T) {
	var out strings.Builder
	out.WriteString("# Hostile attempts\n\nWhat users try on the real control plane who mean no good, and what " +
		"becomes of it. " +
		"Written by TestHostileList from the\ntables that the tests run.\n\n| user | may |\n|---|---|\n")
	users := make([]string, 0, len(hostiles))
	for user := range hostiles {
		users = append(users, user)
	}
	slices.Sort(users)
	for _, user := range users {
		fmt.Fprintf(&out, "| %s | %s |\n", user, hostiles[user])
	}
	out.WriteString("\n| | user | attempt | outcome |\n|---|---|---|---|\n")
	escape := strings.NewReplacer("|", "\\|", "\n", " ")
	for i, a := range slices.Concat(refusedAttempts(), harmlessAttempts(), foreignAttempts()) {
		outcome := "harmless: " + a.harmless
		if len(a.refused) > 0 {
			outcome = "refused: " + strings.Join(a.refused, " … ")
		}
		if hostiles[a.by] == "" || (len(a.refused) == 0) == (a.harmless == "") {
			t.Errorf("attempt %q is by %q, and has no outcome or two", a.try, a.by)
		}
		fmt.Fprintf(&out, "| %d | %s | %s | %s |\n", i+1, a.by, escape.Replace(a.try), escape.Replace(outcome))
	}
	path := filepath.Join("testdata", "hostile.md")
	want, err := os.ReadFile(path)
	if err == nil && string(want) == out.String() {
		return
	}
	if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Errorf("%s was not what the tables say, and has been written anew: commit it", path)
}

// TestRefusedAttempts makes the attempts that the API server is to refuse, beside a Run of the team that runs.
func TestRefusedAttempts(t *testing.T) {
	t.Parallel()
	h := newHostile(t, "hostile", 2)
	h.create(h.teamRun("mine", 8, inPods(4)))
	h.await("mine", rqv1.RunRunning, "bound 8 GPUs")
	h.create(h.teamRun("waits", 16))
	before := h.versions("mine")
	for _, a := range refusedAttempts() {
		t.Run(a.by+"/"+a.try, func(t *testing.T) { h.judge(t, a) })
	}
	if err := differs(before, h.versions("mine")); err != nil {
		t.Errorf("the team's Run has changed: %v", err)
	}
	h.neighbourStarts()
	h.settled()
}

// TestHarmlessAttempts makes those that nobody can refuse, each at a site of its own.
func TestHarmlessAttempts(t *testing.T) {
	t.Parallel()
	for i, a := range harmlessAttempts() {
		t.Run(a.by+"/"+a.try, func(t *testing.T) {
			t.Parallel()
			h := newHostile(t, fmt.Sprintf("harmless-%d", i), 2)
			h.judge(t, a)
			if a.lifted != nil {
				if err := a.lifted(h, h.api); err != nil {
					t.Fatal(err)
				}
			}
			h.neighbourStarts()
		})
	}
}
