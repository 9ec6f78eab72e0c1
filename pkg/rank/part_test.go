package rank_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// runNames are names that a Run may have, among them such that look like a name of a pod of another Run.
var runNames = rapid.OneOf(rapid.StringMatching(`[a-z]([-a-z0-9]{0,50}[a-z0-9])?`),
	rapid.SampledFrom([]string{"a", "a-0", "a-s", "a-s0", "a-0-s1", "a-s0-0", "0", "s0"}))

var parts = rapid.Custom(func(t *rapid.T) rank.Part {
	index := rapid.OneOf(rapid.IntRange(0, 12), rapid.IntRange(0, rank.MaxPods-1), rapid.Just(rank.MaxPods-1))
	return rank.Part{Index: index.Draw(t, "index"), Spare: rapid.Bool().Draw(t, "spare")}
})

// podOf is the pod of a part as the scheduler makes it.
func podOf(run string, uid types.UID, p rank.Part) *corev1.Pod {
	role := rank.RoleOf(&rqv1.RunSpec{}, p)
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: p.PodName(run), Labels: map[string]string{
		rqv1.LabelRun: run, rqv1.LabelRunUID: string(uid), rqv1.LabelIndex: fmt.Sprint(p.Index),
		rqv1.LabelRole: string(role)}}}
}

// Every rank and spare of every Run of a namespace has a name of its own, which a host may have too, and the pod of
// that name tells whose it is and which part it has.
func TestAPodTellsItsPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		named := map[string]string{}
		for i := range rapid.IntRange(1, 8).Draw(t, "pods") {
			run, part := runNames.Draw(t, "run"), parts.Draw(t, "part")
			pod, who := podOf(run, types.UID("uid of "+run), part), fmt.Sprint(run, part)
			if other, taken := named[pod.Name]; taken && other != who {
				t.Fatalf("pod %d: %s and %s are both called %s", i, other, who, pod.Name)
			}
			named[pod.Name] = who
			if wrong := validation.IsDNS1123Label(pod.Name); len(wrong) > 0 {
				t.Fatalf("%s is no host's name: %v", pod.Name, wrong)
			}
			if uid, got, ok := rank.Membership(pod); !ok || got != part || uid != types.UID("uid of "+run) {
				t.Fatalf("%s is %v of %s (%v), want %v", pod.Name, got, uid, ok, part)
			}
		}
	})
}

// A pod whose labels and name do not agree is nobody's: else somebody who copies a pod would take a rank.
func TestAPodThatIsNotWhatItSays(t *testing.T) {
	for name, change := range map[string]func(p *corev1.Pod){
		"a copy under another name":    func(p *corev1.Pod) { p.Name = "train-4" },
		"a rank that calls itself one": func(p *corev1.Pod) { p.Labels[rqv1.LabelRole] = string(rqv1.RoleSpare) },
		"another Run's name":           func(p *corev1.Pod) { p.Labels[rqv1.LabelRun] = "trains" },
		"no index":                     func(p *corev1.Pod) { delete(p.Labels, rqv1.LabelIndex) },
		"an index that is no number":   func(p *corev1.Pod) { p.Labels[rqv1.LabelIndex] = "3.0" },
		"an index below the first":     func(p *corev1.Pod) { p.Labels[rqv1.LabelIndex], p.Name = "-3", "train--3" },
		"an index above all": func(p *corev1.Pod) {
			p.Labels[rqv1.LabelIndex], p.Name = "1000000", "train-1000000"
		},
		"an index above what fits":      func(p *corev1.Pod) { p.Labels[rqv1.LabelIndex] = "99999999999999999999" },
		"no Run":                        func(p *corev1.Pod) { delete(p.Labels, rqv1.LabelRunUID) },
		"a pod without labels":          func(p *corev1.Pod) { p.Labels = nil },
		"a name that has grown a digit": func(p *corev1.Pod) { p.Name = "train-30" },
	} {
		pod := podOf("train", "u", rank.Part{Index: 3})
		change(pod)
		if uid, part, ok := rank.Membership(pod); ok || uid != "" || part != (rank.Part{}) {
			t.Errorf("%s: it is %v of %q", name, part, uid)
		}
	}
}

// Whose an object is its label says; where there is none the reference of the controller does, if that is a Run of the
// name that the object carries.
func TestRunOf(t *testing.T) {
	refers := func(apiVersion, kind, name string, controller bool) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: "referred", Controller: &controller}
	}
	ours := rqv1.GroupVersion.String()
	for name, c := range map[string]struct {
		label string
		refs  []metav1.OwnerReference
		want  types.UID
	}{
		"nobody's":     {},
		"by its label": {label: "labelled", want: "labelled"},
		"by its label, not by reference": {"labelled", []metav1.OwnerReference{refers(ours, "Run", "train", true)},
			"labelled"},
		"by its reference": {refs: []metav1.OwnerReference{refers(ours, "Run", "train", true)},
			want: "referred"},
		"by the second reference": {refs: []metav1.OwnerReference{refers("v1", "Node", "n", false),
			refers(ours, "Run", "train", true)}, want: "referred"},
		"a Run that does not control it": {refs: []metav1.OwnerReference{refers(ours, "Run", "train", false)}},
		"a Run of another name":          {refs: []metav1.OwnerReference{refers(ours, "Run", "other", true)}},
		"a Run of somebody else's API": {
			refs: []metav1.OwnerReference{refers("example.com/v1", "Run", "train", true)}},
		"a kind of ours that is no Run":       {refs: []metav1.OwnerReference{refers(ours, "Reservation", "train", true)}},
		"a Job that is called as the Run was": {refs: []metav1.OwnerReference{refers("batch/v1", "Job", "train", true)}},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: c.refs,
			Labels: map[string]string{rqv1.LabelRun: "train", rqv1.LabelRunUID: c.label}}}
		if uid, ok := rank.RunOf(pod); uid != c.want || ok != (c.want != "") {
			t.Errorf("%s: it is of %q (%v), want %q", name, uid, ok, c.want)
		}
	}
}

// A Lease tells which part the pod that holds it has, by its labels and its role.
func TestALeaseTellsThePartThatHoldsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part, spec := parts.Draw(t, "part"), &rqv1.RunSpec{}
		spec.Opportunistic = !part.Spare && rapid.Bool().Draw(t, "opportunistic") // such Runs have no spares
		lease := &rqv1.Lease{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
			rqv1.LabelIndex: fmt.Sprint(part.Index)}}}
		lease.Spec.Slice.Role = rank.RoleOf(spec, part)
		if got := rank.Held(lease); got != part {
			t.Fatalf("a %s Lease is of %v, want %v", lease.Spec.Slice.Role, got, part)
		}
		if shard := lease.Spec.Slice.Role == rqv1.RoleBorrowed; shard != spec.Opportunistic {
			t.Fatalf("opportunistic: %v, its Lease is %s", spec.Opportunistic, lease.Spec.Slice.Role)
		}
	})
}

// Each pod has one Lease, whoever names it and however often, and a pod that comes after another of its name has
// another. A Lease may be called so.
func TestLeaseNames(t *testing.T) {
	uids := rapid.OneOf(rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`),
		rapid.SampledFrom([]string{"1", "12345678", "123456789"}))
	rapid.Check(t, func(t *rapid.T) {
		run, part, uid := runNames.Draw(t, "run"), parts.Draw(t, "part"), types.UID(uids.Draw(t, "uid"))
		name := rank.LeaseName(part.PodName(run), uid)
		if name != rank.LeaseName(part.PodName(run), uid) || len(validation.IsDNS1123Subdomain(name)) > 0 {
			t.Fatalf("the Lease of %s is called %s", uid, name)
		}
		if long := rank.LeaseName(strings.Repeat("a", 244)+".b-c.d", uid); len(validation.IsDNS1123Subdomain(long)) > 0 ||
			!strings.HasSuffix(long, "-"+string(uid[:min(8, len(uid))])) {
			t.Fatalf("the Lease of a pod with a long name is called %s", long)
		}
		other, otherUID := parts.Draw(t, "another part"), types.UID(uids.Draw(t, "another uid"))
		same := part == other && uid[:min(8, len(uid))] == otherUID[:min(8, len(otherUID))]
		if again := rank.LeaseName(other.PodName(run), otherUID); (again == name) != same {
			t.Fatalf("the Leases of %v (%s) and of %v (%s) are called %s and %s", part, uid, other, otherUID, name, again)
		}
	})
}
