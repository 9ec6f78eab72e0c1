package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

const (
	theirsPod = "v1/Pod $NS theirs-0"
	theirsRun = "rq.davidlangworthy.io/v1/Run $NS $THEIRS"
	ours      = "rq.davidlangworthy.io/"
	// fixedSay is what who changes how a pod is to be run is told, sourcesSay who writes a Run of pods, and frozenSay who
	// changes what no pod may change.
	fixedSay   = "it is set when a pod is created and cannot change after that"
	sourcesSay = "the scheduler alone writes its spec"
	frozenSay  = "pod updates may not change fields other than"
)

// foreignAttempts are those on pods that no Run made, on the Runs that stand for them, and by roles that read them: two
// pods of the team are a group that runs, and another pod waits.
func foreignAttempts() []attempt {
	return slices.Concat(attemptsOnMembers(), attemptsToBeMembers(), attemptsOnDerivedRuns(), attemptsByRoles(),
		attemptsToKeepObjects(), attemptsOddly())
}

// foreignText is a pod for jobtree, with metadata and a spec beside what all have.
func foreignText(name, metadata, spec string) string {
	return "{apiVersion: v1, kind: Pod, metadata: {name: " + name + ", namespace: $NS, " + metadata +
		"}, spec: {schedulerName: jobtree, nodeSelector: {gpu.flavor: $FLAVOR}, " + spec + "}}"
}

// with is a container with GPUs.
func with(gpus string) string {
	return "containers: [{name: a, image: b, resources: {limits: {nvidia.com/gpu: " + gpus + "}}}]"
}

// attemptsOnMembers change pods of a group that runs.
func attemptsOnMembers() (rows []attempt) {
	refuse := func(by, try string, how how, says ...string) {
		rows = append(rows, attempt{by: by, try: "to a pod of others: " + try, how: how, refused: says})
	}
	for _, label := range []string{"run", "run-uid", "index", "role", "group-index", "cohort", "source", "epoch"} {
		refuse("tenant", "another value of label "+label,
			patches(theirsPod, "{metadata: {labels: {"+ours+label+": '7'}}}"), labelsSay)
	}
	for _, label := range []string{"run", "source"} {
		refuse("tenant", "no label "+label+" any more", patches(theirsPod, "{metadata: {labels: {"+ours+label+": null}}}"),
			labelsSay)
		refuse("root", "no label "+label+" any more, by its status",
			patches("status of "+theirsPod, "{metadata: {labels: {"+ours+label+": null}}}"), labelsSay)
	}
	for _, key := range rqv1.AnnotationsAtFirst {
		refuse("tenant", "another value of annotation "+key,
			patches(theirsPod, "{metadata: {annotations: {"+key+": '4'}}}"), "metadata.annotations["+key+"]", fixedSay)
	}
	for _, key := range []string{rqv1.AnnotationOwner, rqv1.AnnotationGroup, rqv1.AnnotationGroupSize} {
		refuse("tenant", "no annotation "+key+" any more",
			patches(theirsPod, "{metadata: {annotations: {"+key+": null}}}"), "metadata.annotations["+key+"]", fixedSay)
	}
	refuse("root", "another owner, by its status", patches("status of "+theirsPod,
		"{metadata: {annotations: {"+rqv1.AnnotationOwner+": $NEXT}}}"), fixedSay)
	refuse("root", "another owner, by server-side apply with force", patchesWith(types.ApplyPatchType, theirsPod,
		"{apiVersion: v1, kind: Pod, metadata: {name: theirs-0, namespace: $NS, annotations: {"+rqv1.AnnotationOwner+
			": $NEXT}}}"), fixedSay)
	for _, key := range []string{rqv1.AnnotationReplaces, rqv1.AnnotationEndsBy, rqv1.AnnotationWorldSize,
		rqv1.AnnotationWrittenBy, rqv1.AnnotationDerived, rqv1.AnnotationMadeFor, ours + "anything"} {
		refuse("tenant", "annotation "+key, patches(theirsPod, "{metadata: {annotations: {"+key+": '9'}}}"), annotationsSay)
	}
	for _, c := range [][2]string{
		{"another node", "{nodeName: elsewhere}"}, {"another scheduler", "{schedulerName: default-scheduler}"},
		{"another priority", "{priority: 1000}"}, {"another service account", "{serviceAccountName: rich}"},
		{"an overhead", "{overhead: {cpu: 1}}"},
		{"more GPUs", "{containers: [{name: a, resources: {limits: {nvidia.com/gpu: 8}}}]}"},
	} {
		refuse("tenant", c[0], patchesWith(types.StrategicMergePatchType, theirsPod, "{spec: "+c[1]+"}"), frozenSay)
	}
	refuse("tenant", "a scheduling gate", patches(theirsPod, "{spec: {schedulingGates: [{name: evil}]}}"),
		"spec.schedulingGates")
	refuse("root", "GPUs for an ephemeral container", patchesWith(types.StrategicMergePatchType,
		"ephemeralcontainers of "+theirsPod,
		"{spec: {ephemeralContainers: [{name: debug, image: busybox, resources: {limits: {nvidia.com/gpu: 4}}}]}}"),
		"cannot be set for an Ephemeral Container")
	refuse("root", "more GPUs by resizing", patchesWith(types.StrategicMergePatchType, "resize of "+theirsPod,
		"{spec: {containers: [{name: a, resources: {limits: {nvidia.com/gpu: 8}, requests: {nvidia.com/gpu: 8}}}]}}"),
		"cpu and memory")
	for _, c := range [][2]string{
		{"that it has ended", "{phase: Succeeded}"}, {"a node that it is nominated for", "{nominatedNodeName: $NODE}"},
		{"a word that somebody ends it",
			"{conditions: [{type: DisruptionTarget, status: 'True', reason: DeletionByJobtree}]}"},
	} {
		refuse("tenant", c[0], patches("status of "+theirsPod, "{status: "+c[1]+"}"), `cannot patch resource "pods/status"`)
	}
	eviction := "{apiVersion: policy/v1, kind: Eviction, metadata: {name: theirs-0, namespace: $NS}}"
	for _, by := range []string{"viewer", "pupil", "stranger"} {
		refuse(by, "eviction", below("eviction", theirsPod, eviction), `cannot create resource "pods/eviction"`)
		refuse(by, "deletion", deletes(theirsPod), `cannot delete resource "pods"`)
		refuse(by, "any label", patches(theirsPod, "{metadata: {labels: {a: b}}}"), `cannot patch resource "pods"`)
	}
	refuse("tenant", "a binding", below("binding", theirsPod,
		"{apiVersion: v1, kind: Binding, metadata: {name: theirs-0, namespace: $NS}, target: {kind: Node, name: $NODE}}"),
		`cannot create resource "pods/binding"`)
	return rows
}

// attemptsToBeMembers are pods that claim what they are not.
func attemptsToBeMembers() (rows []attempt) {
	refuse := func(by, try, metadata, spec string, says ...string) {
		rows = append(rows, attempt{by: by, try: "a pod of others with " + try, how: creates(foreignText("claims", metadata,
			spec)), refused: says})
	}
	for _, label := range []string{"run: $THEIRS", "run-uid: u", "source: Pods", "index: '0'", "role: Spare",
		"epoch: '0'"} {
		refuse("tenant", "label "+label, "labels: {"+ours+label+"}", with("4"), labelsSay)
	}
	for _, key := range []string{rqv1.AnnotationReplaces, rqv1.AnnotationEndsBy, rqv1.AnnotationWorldSize} {
		refuse("chief", "annotation "+key, "annotations: {"+key+": x}", with("4"), annotationsSay)
	}
	refuse("tenant", "a node", "", "nodeName: $NODE, "+with("4"), "spec.nodeName: jobtree chooses the node")
	refuse("root", "a node", "", "nodeName: $NODE, "+with("4"), "spec.nodeName: jobtree chooses the node")
	refuse("tenant", "a priority of its own", "", "priority: 2000000000, "+with("4"), "the integer value of priority")
	refuse("tenant", "a priority class that does not exist", "", "priorityClassName: none, "+with("4"), "no PriorityClass")
	refuse("tenant", "an overhead of GPUs", "", "overhead: {nvidia.com/gpu: 4}, "+with("4"), "Overhead")
	refuse("tenant", "GPUs for the pod as a whole", "", "resources: {limits: {nvidia.com/gpu: 4}}, "+with("4"),
		"spec.resources.limits")
	refuse("tenant", "half a GPU", "", with("500m"), "must be an integer")
	refuse("tenant", "-4 GPUs", "", with("-4"), "must be greater than or equal to 0")
	refuse("tenant", "a service account that does not exist", "", "serviceAccountName: none, "+with("4"),
		`serviceaccount "none" not found`)
	refuse("tenant", "an ephemeral container", "", with("4")+", ephemeralContainers: [{name: d, image: b}]",
		"spec.ephemeralContainers")
	refuse("tenant", "annotations of a megabyte", "annotations: {a: "+strings.Repeat("a", 300000)+"}", with("4"),
		"metadata.annotations", "Too long")
	for _, by := range []string{"viewer", "pupil", "stranger"} {
		refuse(by, "GPUs", "", with("4"), `cannot create resource "pods"`)
	}
	bound := func(metadata string) string {
		return "{apiVersion: v1, kind: Binding, metadata: {name: waits, namespace: $NS, " + metadata +
			"}, target: {kind: Node, name: $NODE}}"
	}
	for _, c := range [][2]string{{"labels: {" + ours + "run: $THEIRS}", labelsSay},
		{"annotations: {" + rqv1.AnnotationOwner + ": $NEXT}", fixedSay},
		{"annotations: {" + rqv1.AnnotationGroup + ": theirs}", fixedSay}} {
		rows = append(rows, attempt{by: "binder", try: "binding a pod that waits, with " + c[0],
			how: below("binding", "v1/Pod $NS waits", bound(c[0])), refused: []string{c[1]}},
			attempt{by: "binder", try: "the same by the resource bindings, with " + c[0], how: creates(bound(c[0])),
				refused: []string{c[1]}})
	}
	return rows
}

// attemptsOnDerivedRuns change a Run that stands for pods, or make one.
func attemptsOnDerivedRuns() (rows []attempt) {
	for _, by := range []string{"tenant", "chief", "root"} {
		for _, change := range []string{`owner: "$NEXT"`, "suspend: true", "priorityClassName: system-node-critical",
			"runtime: {maxDuration: 1s}", "resources: {totalGPUs: 16}",
			"malleable: {minTotalGPUs: 2, maxTotalGPUs: 8, stepGPUs: 2}",
			"ttlSecondsAfterFinished: 1", "funding: {allowBorrow: true}"} {
			rows = append(rows, attempt{by: by, try: "to the Run of others' pods: " + change,
				how: patches(theirsRun, "{spec: {"+change+"}}"), refused: []string{"spec"}})
		}
		says := sourcesSay
		if by == "chief" {
			says = "denied request" // by one of two policies
		}
		rows = append(rows, attempt{by: by, try: "a Run that stands for pods",
			how:     specs("{source: Pods, pods: {kind: Pod, name: waits}, resources: {gpusPerPod: 8}}"),
			refused: []string{says}})
	}
	for _, change := range []string{"pods: {name: waits}", "source: Template", "resources: {gpusPerPod: 1}",
		"template: {spec: {containers: [{name: a, image: b}]}}", "submitter: root",
		"sparesPerGroup: 2", "opportunistic: true"} {
		rows = append(rows, attempt{by: "root", try: "to the Run of others' pods: " + change,
			how: patches(theirsRun, "{spec: {"+change+"}}"), refused: []string{"spec"}})
	}
	return append(rows,
		attempt{by: "pupil", try: "a Run that stands for pods", how: specs("{source: Pods, pods: {kind: Pod, name: waits}}"),
			refused: []string{"spec"}},
		attempt{by: "tenant", try: "the status of the Run of others' pods", how: patches("status of "+theirsRun,
			"{status: {phase: Completed}}"), refused: []string{`cannot patch resource "runs/status"`}},
		attempt{by: "root", try: "the status of the Run of others' pods", how: patches("status of "+theirsRun,
			"{status: {message: x}}"), refused: []string{"only the scheduler"}})
}

// roles are users who have what manifests ship for people, and no more.
var roles = []string{"treasurer", "auditor", "onlooker", "braker"}

// attemptsByRoles: what these, and others, may not write.
func attemptsByRoles() (rows []attempt) {
	deny := func(by, try, verb, resource string, how how) {
		rows = append(rows, attempt{by: by, try: try, how: how,
			refused: []string{fmt.Sprintf("User %q cannot %s resource %q", by, verb, resource)}})
	}
	const api = "{apiVersion: rq.davidlangworthy.io/v1, "
	for _, by := range slices.Concat(roles, []string{"pauper", "binder", "pupil"}) {
		deny(by, "a Lease", "create", "leases", creates(api+"kind: Lease, metadata: {namespace: $NS, name: forged}}"))
		deny(by, "deleting Leases", "deletecollection", "leases", deletes("rq.davidlangworthy.io/v1/Lease $NS"))
		deny(by, "a Reservation", "create", "reservations",
			creates(api+"kind: Reservation, metadata: {namespace: $NS, name: forged}}"))
		if by != "treasurer" {
			deny(by, "a Budget", "create", "budgets", creates(api+"kind: Budget, metadata: {name: forged}}"))
		}
		deny(by, "what a Budget reports", "patch", "budgets/status",
			patches("status of rq.davidlangworthy.io/v1/Budget - $NS-team", "{status: {}}"))
		deny(by, "the key of the lottery", "get", "secrets", reads("v1/Secret jobtree-system lottery-key"))
		deny(by, "a record of what was spent", "create", "configmaps",
			creates("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: jobtree-system, name: settled-forged}}"))
		deny(by, "the scheduler's leadership", "patch", "leases",
			patches("coordination.k8s.io/v1/Lease jobtree-system jobtree-scheduler", "{spec: {holderIdentity: me}}"))
	}
	for _, by := range roles {
		deny(by, "a Run of the team", "create", "runs", specs("{}"))
		deny(by, "a pod", "create", "pods", creates(foreignText("claims", "", with("4"))))
		deny(by, "the Run of others' pods", "delete", "runs", deletes(theirsRun))
		deny(by, "what everybody may read", "patch", "configmaps",
			patches("v1/ConfigMap jobtree-system jobtree-public", "{data: {a: b}}"))
	}
	return rows
}

// TestForeignAttempts makes the attempts on pods that no Run made, all in one namespace: first those that are refused,
// then the others at once. The team's group runs on as it was, and the neighbour is not kept from anything.
func TestForeignAttempts(t *testing.T) {
	t.Parallel()
	h := newHostile(t, "hostile-foreign", 2)
	h.peoplePlay()
	group := rqv1.AnnotationOwner + ": '$TEAM', " + rqv1.AnnotationGroup + ": theirs, " +
		rqv1.AnnotationGroupSize + ": '2'"
	for i := range 2 {
		h.create(h.object(foreignText(fmt.Sprintf("theirs-%d", i), "annotations: {"+group+"}", with("4"))))
	}
	run := h.groupRun("", "Group", "theirs")
	h.await(run, rqv1.RunRunning, "bound 8 GPUs")
	h.create(h.object(foreignText("waits", "annotations: {"+rqv1.AnnotationOwner+": '$TEAM'}", with("8"))))
	before := h.versions(run)
	var odd []attempt
	for _, a := range foreignAttempts() {
		if len(a.refused) == 0 {
			odd = append(odd, a)
			continue
		}
		t.Run(a.by+"/"+a.try, func(t *testing.T) { h.judge(t, a) })
	}
	if err := differs(before, h.versions(run)); err != nil {
		t.Errorf("the team's group has changed: %v", err)
	}
	for i := range odd {
		if err := odd[i].how(h, h.as(odd[i].by)); err != nil {
			t.Errorf("%s: %v", odd[i].try, err)
		}
		odd[i].how = func(*hostile, client.Client) error { return nil }
	}
	for _, a := range odd {
		t.Run(a.by+"/"+a.try, func(t *testing.T) { h.judge(t, a) })
	}
	h.await(run, rqv1.RunRunning, "bound 8 GPUs")
	h.neighbourStarts()
	if err := h.api.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(h.namespace)); err != nil {
		t.Fatal(err)
	}
	h.settled()
}

// peoplePlay gives the pods' default service account the right to spend as the team, and users the roles that are
// shipped.
func (h *hostile) peoplePlay() {
	h.t.Helper()
	h.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "thief"}})
	h.create(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "pods-spend"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "spend"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: h.namespace, Name: "default"}}})
	for user, shipped := range map[string][]string{"treasurer": {"jobtree-budget-admin"}, "auditor": {"jobtree-auditor"},
		"onlooker": {"jobtree-fleet-reader", "jobtree-reservation-reader", "jobtree-budget-reader"}} {
		for _, name := range shipped {
			binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: h.namespace + "-" + user + "-" + name},
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}}
			h.create(binding)
			h.t.Cleanup(func() { _ = h.api.Delete(context.Background(), binding) })
		}
	}
	for _, b := range [][2]string{{"braker", "jobtree-cuts-admin"}, {"auditor", "jobtree-auditor"}} {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "jobtree-system", Name: h.namespace + "-" + b[0]},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: b[1]},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: b[0]}}}
		h.create(binding)
		h.t.Cleanup(func() { _ = h.api.Delete(context.Background(), binding) })
	}
}

// told is an error until a pod waits and is told a text, in few words.
func told(name string, texts ...string) func(h *hostile) error {
	return podIs(name, func(pod *corev1.Pod) error {
		if pod.Spec.NodeName != "" {
			return errors.New("it is bound to " + pod.Spec.NodeName)
		}
		for _, c := range pod.Status.Conditions {
			if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse {
				continue
			}
			missing := slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(c.Message, text) })
			if !missing && len(c.Message) < 2000 {
				return nil
			}
			return fmt.Errorf("it is told, in %d letters: %.300s", len(c.Message), c.Message)
		}
		return errors.New("it is told nothing")
	})
}
