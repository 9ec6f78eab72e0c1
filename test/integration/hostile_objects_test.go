package integration

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

const (
	minePod = "v1/Pod $NS mine-0"
	// labelsSay is what who labels pods as a Run's is told, annotationsSay who annotates them, ownersSay who takes them
	// from it.
	labelsSay      = "labels under rq.davidlangworthy.io/ mark the pods of a Run: only the scheduler"
	annotationsSay = "sets or changes annotations under rq.davidlangworthy.io/ other than those that users write"
	ownersSay      = "metadata.ownerReferences: they tie a pod with labels under rq.davidlangworthy.io/ to its Run"
	forgedRecord   = `'{"spareUID":"zz","node":"$NODE","budget":"$NS-next","envelope":"all","relation":"own"}'`
)

func attemptsOnPods() []attempt {
	forged := func(metadata string) how {
		return creates("{apiVersion: v1, kind: Pod, metadata: {name: forged, namespace: $NS, " + metadata +
			"}, spec: {schedulerName: jobtree, containers: [{name: a, image: b}]}}")
	}
	binding := func(metadata string) string {
		return "{apiVersion: v1, kind: Binding, metadata: {name: gated, namespace: $NS, " + metadata +
			"}, target: {kind: Node, name: $NODE}}"
	}
	gated := ifAbsent("v1/Pod $NS gated", "{apiVersion: v1, kind: Pod, metadata: {name: gated, namespace: $NS}, spec: "+
		"{schedulerName: nobody, containers: [{name: a, image: b}]}}")
	rows := []attempt{
		{by: "tenant", try: "a pod of a Run that is none",
			how:     forged("labels: {rq.davidlangworthy.io/run: mine, rq.davidlangworthy.io/index: '0'}"),
			refused: []string{labelsSay, "submit a Run instead"}},
		{by: "root", try: "a pod of a Run, controlled by it and labelled",
			how: withFirst("rq.davidlangworthy.io/v1/Run", func(string) how {
				return func(h *hostile, as client.Client) error {
					run, err := h.get("mine")
					if err != nil {
						return err
					}
					return forged("labels: {rq.davidlangworthy.io/run: mine, rq.davidlangworthy.io/index: '7'}, ownerReferences: "+
						"[{apiVersion: rq.davidlangworthy.io/v1, kind: Run, name: mine, controller: true, uid: "+string(run.UID)+"}]")(h,
						as)
				}
			}), refused: []string{labelsSay}},
		{by: "tenant", try: "a pod that replaces a rank",
			how:     forged("annotations: {rq.davidlangworthy.io/replaces: " + forgedRecord + "}"),
			refused: []string{"metadata.annotations[rq.davidlangworthy.io/replaces]", annotationsSay}},
		{by: "tenant", try: "a pod with GPUs that says jobtree placed it",
			how: creates("{apiVersion: v1, kind: Pod, metadata: {name: placed, namespace: $NS}, spec: {schedulerName: " +
				"jobtree, nodeName: $NODE, containers: [{name: a, image: b, resources: {limits: {nvidia.com/gpu: 8}}}]}}"),
			refused: []string{"spec.nodeName", "leave it out"}},
		{by: "root", try: "GPUs for an ephemeral container",
			how: patchesWith(types.StrategicMergePatchType, "ephemeralcontainers of "+minePod,
				"{spec: {ephemeralContainers: [{name: debug, image: busybox, resources: {limits: {nvidia.com/gpu: 8}}}]}}"),
			refused: []string{"spec.ephemeralContainers[0].resources", "cannot be set for an Ephemeral Container"}},
		{by: "root", try: "more GPUs by resizing a pod", how: patchesWith(types.StrategicMergePatchType, "resize of "+minePod,
			"{spec: {containers: [{name: pause, resources: {limits: {nvidia.com/gpu: 8}, requests: {nvidia.com/gpu: 8}}}]}}"),
			refused: []string{"cpu and memory"}},
		{by: "tenant", try: "more GPUs by changing a pod", how: patchesWith(types.StrategicMergePatchType, minePod,
			"{spec: {containers: [{name: pause, resources: {limits: {nvidia.com/gpu: 8}}}]}}"), refused: []string{"spec",
			"pod updates may not change fields other than"}},
		{by: "tenant", try: "another node for a pod", how: patches(minePod, "{spec: {nodeName: elsewhere}}"),
			refused: []string{"spec", "pod updates may not change fields other than"}},
		{by: "tenant", try: "the status of a pod", how: patches("status of "+minePod, "{status: {phase: Succeeded}}"),
			refused: []string{`User "tenant" cannot patch resource "pods/status"`}},
		{by: "tenant", try: "a binding", how: all(gated, below("binding", "v1/Pod $NS gated", binding(""))),
			refused: []string{`User "tenant" cannot create resource "pods/binding"`}},
		{by: "binder", try: "a binding whose labels make the pod a Run's",
			how:     all(gated, below("binding", "v1/Pod $NS gated", binding("labels: {rq.davidlangworthy.io/run: mine}"))),
			refused: []string{labelsSay}},
		{by: "binder", try: "a binding whose annotations make the pod a replacement",
			how: all(gated, below("binding", "v1/Pod $NS gated",
				binding("annotations: {rq.davidlangworthy.io/replaces: "+forgedRecord+"}"))),
			refused: []string{"metadata.annotations[rq.davidlangworthy.io/replaces]", annotationsSay}},
		{by: "binder", try: "the same by the resource bindings",
			how:     all(gated, creates(binding("annotations: {rq.davidlangworthy.io/replaces: "+forgedRecord+"}"))),
			refused: []string{"metadata.annotations[rq.davidlangworthy.io/replaces]", annotationsSay}},
		{by: "tenant", try: "deleting a pod of another namespace", how: deletes("v1/Pod kube-system any"),
			refused: []string{`User "tenant" cannot delete resource "pods"`}},
		{by: "tenant", try: "evicting a pod of another namespace", how: below("eviction", "v1/Pod kube-system any",
			"{apiVersion: policy/v1, kind: Eviction, metadata: {name: any, namespace: kube-system}}"),
			refused: []string{`User "tenant" cannot create resource "pods/eviction"`}},
		{by: "viewer", try: "evicting a pod of a Run",
			how: below("eviction", minePod,
				"{apiVersion: policy/v1, kind: Eviction, metadata: {name: mine-0, namespace: $NS}}"),
			refused: []string{`User "viewer" cannot create resource "pods/eviction"`}},
		{by: "pupil", try: "a pod of its own", how: forged(""),
			refused: []string{`User "pupil" cannot create resource "pods"`}},
		{by: "pupil", try: "deleting a pod of a Run", how: deletes(minePod),
			refused: []string{`User "pupil" cannot delete resource "pods"`}},
	}
	for _, c := range [][]string{
		{"another Run's name in a label", "{metadata: {labels: {rq.davidlangworthy.io/run: next}}}", labelsSay},
		{"no label any more", "{metadata: {labels: {rq.davidlangworthy.io/run: null}}}", labelsSay},
		{"another role in a label", "{metadata: {labels: {rq.davidlangworthy.io/role: Spare}}}", labelsSay},
		{"another rank in a label", "{metadata: {labels: {rq.davidlangworthy.io/index: '1'}}}", labelsSay},
		{"a replacement's annotation", "{metadata: {annotations: {rq.davidlangworthy.io/replaces: " + forgedRecord + "}}}",
			annotationsSay},
		{"another annotation of ours", "{metadata: {annotations: {rq.davidlangworthy.io/anything: x}}}", annotationsSay},
		{"no owner any more", "{metadata: {ownerReferences: null}}", ownersSay, "delete it or its Run"},
		{"another owner beside its Run",
			"{metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: kube-root-ca.crt, uid: " +
				"00000000-0000-0000-0000-000000000001}]}}", ownersSay, "delete it or its Run"},
	} {
		rows = append(rows, attempt{by: "tenant", try: "to a pod of a Run: " + c[0], how: patches(minePod, c[1]),
			refused: c[2:]})
	}
	return append(rows, attempt{by: "root", try: "to a pod of a Run: another label, by its status",
		how:     patches("status of "+minePod, "{metadata: {labels: {rq.davidlangworthy.io/run: next}}}"),
		refused: []string{labelsSay}}, attempt{by: "root",
		try: "to a pod of a Run: an annotation of ours, by server-side apply with force",
		how: patchesWith(types.ApplyPatchType, minePod,
			"{apiVersion: v1, kind: Pod, metadata: {name: mine-0, namespace: $NS, annotations: "+
				"{rq.davidlangworthy.io/replaces: "+
				forgedRecord+"}}}"), refused: []string{annotationsSay}})
}

// ifAbsent has the administrator create an object unless it is there.
func ifAbsent(what, text string) how {
	return func(h *hostile, _ client.Client) error {
		if h.api.Get(context.Background(), client.ObjectKeyFromObject(h.named(what)), h.named(what)) == nil {
			return nil
		}
		return h.api.Create(context.Background(), h.object(text))
	}
}

func attemptsOnTheLedger() []attempt {
	const lease, reservation = "rq.davidlangworthy.io/v1/Lease", "rq.davidlangworthy.io/v1/Reservation"
	only := func(what string) []string {
		return []string{"only the scheduler", what, "not user root", "an administrator who must may add --as="}
	}
	forgedLease := creates(`{apiVersion: rq.davidlangworthy.io/v1, kind: Lease, metadata: {namespace: $NS, name: forged},
spec: {owner: "$NEXT", runRef: {name: mine, namespace: $NS, uid: u}, groupIndex: 0, cohort: 0,
slice: {role: Active, nodes: [{name: $NODE, gpus: 8}]}, payer: {budget: $NS-next, owner: "$NEXT", relation: own},
paidByEnvelope: all, reason: Start, start: "2026-01-01T00:00:00.000000Z"}}`)
	forgedReservation := creates(`{apiVersion: rq.davidlangworthy.io/v1, kind: Reservation,
metadata: {namespace: $NS, name: forged}, spec: {runRef: {name: mine, namespace: $NS}, intendedSlice: {},
earliestStart: "2026-01-01T00:00:00Z"}}`)
	first := func(do func(what string) how) how {
		return withFirst(lease, func(name string) how { return do(lease + " $NS " + name) })
	}
	return []attempt{
		{by: "tenant", try: "a Lease that another team pays for", how: forgedLease,
			refused: []string{`User "tenant" cannot create resource "leases"`}},
		{by: "root", try: "a Lease that another team pays for", how: forgedLease,
			refused: only("writes leases.rq.davidlangworthy.io")},
		{by: "chief", try: "another payer of a Lease", how: first(func(l string) how {
			return patches(l, "{spec: {payer: {budget: x}}}")
		}), refused: []string{`User "chief" cannot patch resource "leases"`}},
		{by: "root", try: "another payer of a Lease", how: first(func(l string) how {
			return patches(l, "{spec: {payer: {budget: x}}}")
		}), refused: []string{"spec"}},
		{by: "root", try: "another pod of a Lease", how: first(func(l string) how {
			return patches(l, "{metadata: {labels: {rq.davidlangworthy.io/pod: x}}}")
		}), refused: only("writes leases")},
		{by: "root", try: "an owner of a Lease, with whom it goes", how: first(func(l string) how {
			return patches(l, "{metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: x, uid: x1}]}}")
		}), refused: only("writes leases")},
		{by: "root", try: "a finalizer that keeps a Lease for ever", how: first(func(l string) how {
			return patches(l, "{metadata: {finalizers: [example.com/mine]}}")
		}), refused: []string{"metadata.finalizers", "nobody may add finalizers", "to a GPU lease", "leave it out"}},
		{by: "root", try: "the end of a Lease", how: first(func(l string) how {
			return patches("status of "+l,
				`{status: {closed: true, ended: "2026-01-01T00:00:00.000000Z", closureReason: Completed}}`)
		}), refused: []string{"status"}},
		{by: "tenant", try: "deleting a Lease", how: first(func(l string) how { return deletes(l) }),
			refused: []string{`User "tenant" cannot delete resource "leases"`}},
		{by: "root", try: "deleting a Lease", how: first(func(l string) how { return deletes(l) }),
			refused: []string{"only the scheduler", "deletes leases", "what was spent stays on record"}},
		{by: "root", try: "deleting all Leases", how: deletes(lease + " $NS"),
			refused: []string{"only the scheduler", "deletes leases"}},
		{by: "tenant", try: "a Reservation for now", how: forgedReservation,
			refused: []string{`User "tenant" cannot create resource "reservations"`}},
		{by: "root", try: "a Reservation for now", how: forgedReservation, refused: only("writes reservations")},
		{by: "tenant", try: "deleting all Reservations", how: deletes(reservation + " $NS"),
			refused: []string{`User "tenant" cannot deletecollection resource "reservations"`}},
		{by: "tenant", try: "the key of the lottery", how: reads("v1/Secret jobtree-system lottery-key"),
			refused: []string{`User "tenant" cannot get resource "secrets"`}},
		{by: "tenant", try: "a record of what was spent", how: patches("v1/ConfigMap jobtree-system settled-$NS-team",
			"{data: {record.json: '{}'}}"), refused: []string{`User "tenant" cannot patch resource "configmaps"`}},
		{by: "root", try: "a record of what was spent",
			how: creates("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: jobtree-system, name: settled-$NS, " +
				"labels: {rq.davidlangworthy.io/record: 'true'}}, data: {record.json: '{}'}}"),
			refused: []string{"only the scheduler", "writes the record of what was spent"}},
		{by: "tenant", try: "the brakes on cuts",
			how: creates("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: jobtree-system, name: jobtree-cuts}, " +
				"data: {paused: 'true'}}"),
			refused: []string{`User "tenant" cannot create resource "configmaps"`}},
		{by: "tenant", try: "the scheduler's leadership",
			how:     patches("coordination.k8s.io/v1/Lease jobtree-system jobtree-scheduler", "{spec: {holderIdentity: me}}"),
			refused: []string{`User "tenant" cannot patch resource "leases"`}},
		{by: "tenant", try: "a kubelet's lease, so that its node is lost",
			how:     deletes("coordination.k8s.io/v1/Lease kube-node-lease $NODE"),
			refused: []string{`User "tenant" cannot delete resource "leases"`}},
		{by: "tenant", try: "an event of the scheduler's, elsewhere",
			how: creates("{apiVersion: v1, kind: Event, metadata: {namespace: default, name: forged}, involvedObject: " +
				"{kind: Budget, name: $NS-next}, reason: WithinBudget, message: x}"),
			refused: []string{`User "tenant" cannot create resource "events"`}},
	}
}

func attemptsOnMoney() []attempt {
	const mine, next = "rq.davidlangworthy.io/v1/Budget - $NS-team", "rq.davidlangworthy.io/v1/Budget - $NS-next"
	envelopes := func(more string) string { return "{spec: {envelopes: [{name: all, flavor: $FLAVOR, " + more + "}]}}" }
	return []attempt{
		{by: "tenant", try: "a larger Budget", how: patches(mine, envelopes("concurrency: 800")),
			refused: []string{`User "tenant" cannot patch resource "budgets"`}},
		{by: "chief", try: "a Budget of its own",
			how: creates(`{apiVersion: rq.davidlangworthy.io/v1, kind: Budget, metadata: {name: $NS-mine}, spec: {owner: ` +
				`"$TEAM", envelopes: [{name: a, flavor: $FLAVOR, concurrency: 800}]}}`),
			refused: []string{`User "chief" cannot create resource "budgets"`}},
		{by: "tenant", try: "that another team lends to it",
			how:     patches(next, envelopes(`concurrency: 8, lending: {allow: true, to: ["*"]}`)),
			refused: []string{`User "tenant" cannot patch resource "budgets"`}},
		{by: "tenant", try: "that another team is its parent", how: patches(mine, `{spec: {parents: ["$NEXT"]}}`),
			refused: []string{`User "tenant" cannot patch resource "budgets"`}},
		{by: "chief", try: "deleting another team's Budget", how: deletes(next),
			refused: []string{`User "chief" cannot delete resource "budgets"`}},
		{by: "stranger", try: "writing another team's Budget, which everybody may read",
			how: patches(next, "{spec: {owner: a}}"), refused: []string{`User "stranger" cannot patch resource "budgets"`}},
		{by: "root", try: "the status of a Budget", how: patches("status of "+next, "{status: {envelopes: []}}"),
			refused: []string{"only the scheduler", "budgets.rq.davidlangworthy.io/status"}},
		{by: "root", try: "a Budget with a window that Go cannot decode, which nobody could list any more",
			how: creates(`{apiVersion: rq.davidlangworthy.io/v1, kind: Budget, metadata: {name: $NS-evil},
spec: {owner: "$TEAM", envelopes: [{name: a, flavor: $FLAVOR, concurrency: 8, end: "2027-01-01T00:00:00+30:00"}]}}`),
			refused: []string{"spec.envelopes[0].end"}},
		{by: "root", try: "an owner as an object",
			how:     creates(`{apiVersion: rq.davidlangworthy.io/v1, kind: Owner, metadata: {namespace: $NS, name: a}}`),
			refused: []string{"an owner is a name, not an object"}},
	}
}

func attemptsOnRights() []attempt {
	use := `rules: [{apiGroups: [rq.davidlangworthy.io], resources: [owners], resourceNames: ["$NEXT"], verbs: [use]}]`
	may := func(user, verb, resource string) []string {
		return []string{`User "` + user + `" cannot ` + verb + ` resource "` + resource + `"`}
	}
	return []attempt{
		{by: "chief", try: "a Role with use of another owner",
			how: creates("{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: $NS, name: evil}, " +
				use + "}"),
			refused: []string{`user "chief"`, "is attempting to grant RBAC permissions not currently held"}},
		{by: "chief", try: "a Role that may write Leases",
			how: creates("{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: $NS, name: evil}, " +
				"rules: [{apiGroups: [rq.davidlangworthy.io], resources: [leases], verbs: ['*']}]}"),
			refused: []string{"is attempting to grant RBAC permissions not currently held"}},
		{by: "chief", try: "the scheduler's role for its own service account",
			how: creates("{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: $NS, name: " +
				"evil}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: jobtree-scheduler}, subjects: " +
				"[{kind: ServiceAccount, name: default, namespace: $NS}]}"),
			refused: []string{"is attempting to grant RBAC permissions not currently held"}},
		{by: "tenant", try: "a Role with use of another owner",
			how: creates("{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: $NS, name: evil}, " +
				use + "}"), refused: may("tenant", "create", "roles")},
		{by: "tenant", try: "acting as the scheduler", how: posing("jobtree-scheduler"),
			refused: []string{"may not impersonate"}},
		{by: "chief", try: "acting as the scheduler", how: posing("jobtree-scheduler"),
			refused: []string{"may not impersonate"}},
		{by: "chief", try: "a token of the scheduler",
			how: below("token", "v1/ServiceAccount jobtree-system jobtree-scheduler",
				"{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, spec: {audiences: []}}"), refused: may("chief",
				"create", "serviceaccounts/token")},
		{by: "chief", try: "deleting an admission policy",
			how:     deletes("admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding - jobtree-owners"),
			refused: may("chief", "delete", "validatingadmissionpolicybindings")},
		{by: "tenant", try: "a node that is lost",
			how: patches("v1/Node - $NODE", "{spec: {unschedulable: true}, metadata: {annotations: {"+rqv1.AnnotationLost+
				": now}}}"), refused: may("tenant", "patch", "nodes")},
		{by: "tenant", try: "a node of another GPU type",
			how:     patches("v1/Node - $NODE", "{metadata: {labels: {gpu.flavor: mine}}}"),
			refused: may("tenant", "patch", "nodes")},
		{by: "chief", try: "a priority of its own",
			how:     creates("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: evil}, value: 1000000}"),
			refused: may("chief", "create", "priorityclasses")},
		{by: "tenant", try: "reading another team's Runs", how: reads("rq.davidlangworthy.io/v1/Run kube-system any"),
			refused: may("tenant", "get", "runs")},
		{by: "viewer", try: "a pod that runs as another's service account",
			how: creates("{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: $NS}, spec: {serviceAccountName: " +
				"default, containers: [{name: a, image: b}]}}"), refused: may("viewer", "create", "pods")},
	}
}
