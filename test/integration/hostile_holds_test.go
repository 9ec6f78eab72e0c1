package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// harmlessAttempts are those that the API server lets pass, and that hurt nobody. After each of them the neighbour's
// Run starts.
func harmlessAttempts() []attempt {
	return slices.Concat(attemptsToStay(), attemptsToStop(), attemptsToFlood(), attemptsToTake(), attemptsWithoutPayer(),
		attemptsByNames(), attemptsOnForeign(), attemptsOnOthers(), attemptsByFinalizers())
}

const (
	evil = "rq.davidlangworthy.io/v1/Run $NS evil"
	// years is a grace period of a year, and mostGrace the longest that pods of Runs get.
	years, mostGrace = int64(31536000), int64(600)
	// lingers has kwok play a container that does not end when it is told to.
	lingers = "{metadata: {annotations: {pod-delete.stage.kwok.x-k8s.io/delay: 1h}}, spec: " +
		"{terminationGracePeriodSeconds: 31536000, containers: [{name: a, image: b}]}}"
)

// attemptsToStay try to keep GPUs that are to be given back.
func attemptsToStay() []attempt {
	withFinalizer := runs("{metadata: {finalizers: [example.com/mine]}}")
	begun := func(create how) how { return all(create, running("evil")) }
	return []attempt{
		{by: "tenant", try: "deleting a Run that has a finalizer of somebody's",
			how: all(begun(withFinalizer), finalizerGoes, deletes(evil)), harmless: "its pods are gone",
			after: podsGone("evil")},
		{by: "tenant", try: "deleting a Run that has a finalizer, in the foreground",
			how: all(begun(withFinalizer), finalizerGoes,
				deletes(evil, client.PropagationPolicy(metav1.DeletePropagationForeground))),
			harmless: "its pods are gone", after: podsGone("evil")},
		{by: "tenant", try: "deleting a Run and orphaning its pods",
			how:      all(begun(runs("{}")), deletes(evil, client.PropagationPolicy(metav1.DeletePropagationOrphan))),
			harmless: "its pods are gone", after: podsGone("evil")},
		{by: "tenant", try: "a template with a grace period of a year",
			how: begun(specs("{template: " + lingers + "}")), harmless: "its pods have 10 minutes",
			after: podIs("evil-0", capped)},
		{by: "tenant", try: "outliving maxDuration by a grace period of a year",
			how:      begun(specs("{runtime: {maxDuration: 2s}, template: " + lingers + "}")),
			harmless: "its pods end within 10 minutes",
			after:    podIs("evil-0", ending)},
		{by: "tenant", try: "deleting a pod of a Run with a grace period of a year",
			how: all(begun(specs("{template: "+lingers+"}")),
				deletes("v1/Pod $NS evil-0", client.GracePeriodSeconds(years))),
			harmless: "it ends within 10 minutes", after: podIs("evil-0", ending)},
		{by: "tenant", try: "evicting a pod of a Run with a grace period of a year",
			how: all(begun(specs("{template: "+lingers+"}")), below("eviction", "v1/Pod $NS evil-0",
				fmt.Sprintf("{apiVersion: policy/v1, kind: Eviction, metadata: {name: evil-0, namespace: $NS}, deleteOptions: "+
					"{gracePeriodSeconds: %d}}", years))),
			harmless: "it ends within 10 minutes", after: podIs("evil-0", ending)},
		{by: "chief", try: "a PodDisruptionBudget over pods whose time is over",
			how: all(creates("{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: evil, namespace: $NS}, "+
				"spec: {minAvailable: 100%, selector: {}}}"),
				as("tenant", begun(specs("{runtime: {maxDuration: 2s}}")))), harmless: "its pods have ended",
			after: podsEnded("evil")},
		{by: "tenant", try: "a Run that goes with a ConfigMap, which it deletes",
			how: func(h *hostile, as client.Client) error {
				parent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "parent"}}
				if err := as.Create(context.Background(), parent); err != nil {
					return err
				}
				child := runs("{metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: parent, uid: " +
					string(parent.UID) + "}]}}")
				return all(begun(child), deletes("v1/ConfigMap $NS parent"))(h, as)
			}, harmless: "its pods are gone", after: podsGone("evil")},
		{by: "tenant", try: "filling a Run that runs until its status cannot be stored",
			how: all(begun(specs("{runtime: {maxDuration: 15s}, template: {spec: {containers: [{name: a, image: b}], "+
				"hostAliases: [{ip: 10.0.0.1, hostnames: ["+longNames(15000)+"]}]}}}")), fills(evil)),
			harmless: "its pods have ended when its time is over", after: podsEnded("evil")},
		{by: "tenant", try: "creating a Run again while its pods end",
			how: all(begun(specs("{template: "+strings.Replace(lingers, "1h", "2s", 1)+"}")), deletes(evil),
				runs("{}")),
			harmless: "it runs when they have ended, and is paid for once", after: paidOnce("evil")},
	}
}

// attemptsToStop are Runs that cannot start, and hold nothing meanwhile.
func attemptsToStop() []attempt {
	rows := []attempt{}
	stuck := func(try string, create how, text string, lifted ...how) {
		rows = append(rows, attempt{by: "tenant", try: try, how: create, harmless: "it holds nothing, and says: " + text,
			lifted: all(lifted...),
			after: func(h *hostile) error {
				return firstOf(saying("evil", rqv1.RunPending, text)(h), h.holdsNothing("evil"))
			}})
	}
	const taken = "the API server rejects the Run's pods"
	stuck("more pods than the namespace's quota allows",
		all(administrator(creates("{apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: $NS}, spec: "+
			"{hard: {pods: 2}}}")),
			quotaCounts, specs("{resources: {gpusPerPod: 1}}")), "exceeded quota", deletes("v1/ResourceQuota $NS q"))
	stuck("privileged pods in a restricted namespace",
		all(administrator(patches("v1/Namespace - $NS",
			"{metadata: {labels: {pod-security.kubernetes.io/enforce: restricted}}}")),
			templates("{spec: {containers: [{name: a, image: b, securityContext: {privileged: true}}]}}")),
		"violates PodSecurity",
		patches("v1/Namespace - $NS", "{metadata: {labels: {pod-security.kubernetes.io/enforce: null}}}"))
	stuck("a priority class that does not exist", templates("{spec: {priorityClassName: none}}"),
		"no PriorityClass with name none")
	stuck("a runtime class that does not exist", templates("{spec: {runtimeClassName: none}}"), taken)
	stuck("a service account that does not exist", templates("{spec: {serviceAccountName: none}}"), taken)
	stuck("GPUs as overhead of its pods", templates("{spec: {overhead: {nvidia.com/gpu: 8}}}"), taken)
	stuck("GPUs for its pods as a whole", templates("{spec: {resources: {limits: {nvidia.com/gpu: 8}}}}"), taken)
	stuck("annotations of a megabyte", templates("{metadata: {annotations: {a: "+strings.Repeat("a", 300000)+"}}}"), taken)
	stuck("a Run that leaves no room for its status", templates("{spec: {hostAliases: [{ip: 10.0.0.1, hostnames: ["+
		longNames(20000)+"]}]}}"), "because its status needs room")
	stuck("a sponsor that does not lend",
		specs(`{resources: {totalGPUs: 16}, funding: {allowBorrow: true, sponsors: ["$NEXT"]}}`),
		"budget of $TEAM is short by 8 of 16 GPUs")
	for _, c := range [][2]string{
		{"a node that does not exist", "{spec: {nodeSelector: {kubernetes.io/hostname: none}}}"},
		{"a volume claim that does not exist", "{spec: {volumes: [{name: a, persistentVolumeClaim: {claimName: none}}]}}"},
		{"a device claim that does not exist", "{spec: {resourceClaims: [{name: a, resourceClaimName: none}]}}"},
		{"a thousand CPUs", "{spec: {containers: [{name: a, image: b, resources: {requests: {cpu: 1000}}}]}}"},
	} {
		rows = append(rows, attempt{by: "tenant", try: c[0], how: templates(c[1]), harmless: "it waits, and holds nothing",
			after: func(h *hostile) error { return firstOf(saying("evil", rqv1.RunPending, "")(h), h.holdsNothing("evil")) }})
	}
	return rows
}

// attemptsToFlood ask for much more than there is.
func attemptsToFlood() []attempt {
	return []attempt{
		{by: "tenant", try: "2,000 shards of an opportunistic Run",
			how:      specs("{opportunistic: true, resources: {totalGPUs: 2000, gpusPerPod: 1}}"),
			harmless: "there are at most as many pods as GPUs that run, and as many that wait", after: wideEnough(32)},
		{by: "tenant", try: "a Run of 1 to 2,000 GPUs",
			how: specs("{resources: {totalGPUs: 2000, gpusPerPod: 1}, malleable: {minTotalGPUs: 1, maxTotalGPUs: 2000, " +
				"stepGPUs: 1}}"),
			harmless: "there are no more pods than GPUs", after: wideEnough(16)},
		{by: "pauper", try: "a Run that nobody can pay for", how: specs(`{owner: "$ORG:poor"}`),
			harmless: "it makes no pod, and says that there is no Budget", after: func(h *hostile) error {
				return firstOf(saying("evil", rqv1.RunPending, "$ORG:poor")(h), fewPods("evil", 0)(h))
			}},
		{by: "tenant", try: "a Run of 1,000,000 pods", how: specs("{resources: {totalGPUs: 1000000, gpusPerPod: 1}}"),
			harmless: "it makes no pod", after: func(h *hostile) error {
				return firstOf(saying("evil", rqv1.RunPending, "1000000")(h), fewPods("evil", 0)(h))
			}},
	}
}

// wideEnough is an error until a Run has started, or while it has more pods than that.
func wideEnough(pods int) func(h *hostile) error {
	return func(h *hostile) error {
		return firstOf(fewPods("evil", pods)(h), saying("evil", rqv1.RunRunning, "")(h))
	}
}

// fullFleet has the neighbour run, and somebody else hold the other node.
func fullFleet() how {
	return all(administrator(creates("{apiVersion: v1, kind: Pod, metadata: {name: holder, namespace: $NS}, spec: "+
		"{nodeName: $NS-d0-1, containers: [{name: a, image: b, resources: {limits: {nvidia.com/gpu: 8}}}]}}")),
		func(h *hostile, _ client.Client) error { h.neighbourStarts(); return nil })
}

// attemptsToTake go for GPUs without paying for them, or for those of others.
func attemptsToTake() []attempt {
	mine := all(runs("{}"), running("evil"))
	full := fullFleet()
	return []attempt{
		{by: "binder", try: "binding a pod of its waiting Run to a full node",
			how: all(full, runs("{}"), podThere("evil-0"), below("binding", "v1/Pod $NS evil-0",
				"{apiVersion: v1, kind: Binding, metadata: {name: evil-0, namespace: $NS}, target: {kind: Node, name: $NODE}}")),
			harmless: "the pod goes, and its Run waits", after: func(h *hostile) error {
				h.disown("evil-0")
				return firstOf(podIs("evil-0", func(pod *corev1.Pod) error {
					if pod.Spec.NodeName != "" {
						return errors.New("the pod is bound to " + pod.Spec.NodeName)
					}
					return nil
				})(h), saying("neighbour", rqv1.RunRunning, "")(h))
			}},
		{by: "tenant", try: "pods of the highest priority on a full fleet",
			how:      all(full, templates("{spec: {priorityClassName: system-node-critical}}")),
			harmless: "they wait as any other, and nobody is preempted", after: func(h *hostile) error {
				return firstOf(saying("evil", rqv1.RunPending, "short by")(h),
					saying("neighbour", rqv1.RunRunning, "bound 8 GPUs")(h))
			}},
		{by: "tenant", try: "deleting pods of its Run, so that they are made anew",
			how:      all(mine, deletes("v1/Pod $NS evil-0", client.GracePeriodSeconds(0))),
			harmless: "they are paid for as before, once", after: paidOnce("evil")},
		{by: "tenant", try: "evicting pods of its Run",
			how: all(mine, below("eviction", "v1/Pod $NS evil-0",
				"{apiVersion: policy/v1, kind: Eviction, metadata: {name: evil-0, namespace: $NS}}")),
			harmless: "they are paid for as before, once", after: paidOnce("evil")},
		{by: "tenant", try: "a Run that is created with a status",
			how:      runs("{status: {phase: Running, message: x, width: {min: 1, max: 800, desired: 800, allocated: 800}}}"),
			harmless: "it has the status of any new Run, and is paid for", after: paidOnce("evil")},
		{by: "tenant", try: "a label and an annotation of ours on a Run",
			how: runs("{metadata: {labels: {rq.davidlangworthy.io/run: neighbour}, annotations: " +
				"{rq.davidlangworthy.io/replaces: " + forgedRecord + "}}}"),
			harmless: "nobody reads them, and it is paid for", after: paidOnce("evil")},
	}
}

// attemptsByNames make names meet.
func attemptsByNames() []attempt {
	small := func(name, more string) how {
		return runs("{metadata: {name: " + name + "}, spec: {resources: {totalGPUs: 2, gpusPerPod: 1}" + more + "}}")
	}
	squat := func(what string) how { return creates("{apiVersion: v1, metadata: {namespace: $NS, " + what + "}") }
	return []attempt{
		{by: "tenant", try: "Runs that are called like pods of each other",
			how:      all(small("a", ", sparesPerGroup: 1"), small("a-0", ""), small("a-s0", "")),
			harmless: "all run, each with its own pods", after: func(h *hostile) error {
				return firstOf(saying("a", rqv1.RunRunning, "")(h), saying("a-0", rqv1.RunRunning, "")(h),
					saying("a-s0", rqv1.RunRunning, "")(h), h.verdict(context.Background()))
			}},
		{by: "tenant", try: "a pod that has the name of a Run's",
			how: all(squat("name: evil-0}, kind: Pod, spec: {schedulerName: nobody, containers: [{name: a, image: b}]}"),
				runs("{}")),
			harmless: "the Run waits, and says which pod to delete",
			after: saying("evil", rqv1.RunPending, "Pod evil-0 exists and does not belong to this Run; delete it, or give "+
				"the Run another name")},
		{by: "tenant", try: "a Service that has the name of a Run's",
			how: all(squat("name: evil}, kind: Service, spec: {ports: [{port: 80}]}"),
				runs("{spec: {resources: {gpusPerPod: 4}}}")), // one of one pod has none
			harmless: "the Run waits, and says which Service to delete",
			after: saying("evil", rqv1.RunPending, "Service evil exists and does not belong to this Run; delete it, or give "+
				"the Run another name")},
	}
}
