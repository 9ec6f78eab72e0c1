package integration

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

const (
	evilPod = "v1/Pod $NS evil"
	// owned is the annotation that names the team, and stubbornly has kwok play a container that does not end when told
	// to.
	owned      = rqv1.AnnotationOwner + ": '$TEAM'"
	stubbornly = "pod-delete.stage.kwok.x-k8s.io/delay: 1h"
	aYear      = "terminationGracePeriodSeconds: 31536000, "
)

// alone is a pod of the team's that no Run made, with metadata and a spec beside what all have; its service account may
// spend as the team.
func alone(metadata, spec string) how {
	return all(administrator(creates("{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: "+
		"{name: pods-spend, namespace: $NS}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: spend}, "+
		"subjects: [{kind: ServiceAccount, name: default, namespace: $NS}]}")),
		creates(foreignText("evil", metadata, spec)))
}

// aloneRuns is such a pod of 8 GPUs once it runs.
func aloneRuns(metadata, spec string) how {
	return all(alone(metadata, spec+with("8")), func(h *hostile, as client.Client) error {
		return running(h.evilRun())(h, as)
	})
}

// evilRun is the Run that stands for that pod.
func (h *hostile) evilRun() string { return h.groupRun("", "Pod", "evil") }

// evilGoes has that pod be gone, which no Run takes with it.
func evilGoes(h *hostile, as client.Client) error {
	if err := patches(evilPod, "{metadata: {finalizers: null}}")(h, as); err != nil {
		return client.IgnoreNotFound(err)
	}
	// Nothing of it runs any more: else its GPUs were held for its grace period.
	if err := patches("status of "+evilPod, "{status: {phase: Failed}}")(h, h.api); err != nil {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(deletes(evilPod, client.GracePeriodSeconds(0))(h, as))
}

// givenBack is an error while a Lease of that Run is open.
func givenBack(h *hostile) error {
	for _, lease := range h.leasesOf(h.evilRun()) {
		if !lease.Status.Closed {
			return fmt.Errorf("Lease %s is open", lease.Name)
		}
	}
	return nil
}

// attemptsOnForeign are those to keep GPUs that are to be given back, and to stop what is due, with pods that no Run
// made.
func attemptsOnForeign() (rows []attempt) {
	annotated := func(more ...string) string {
		return "annotations: {" + strings.Join(append([]string{owned}, more...), ", ") + "}"
	}
	finalizer := annotated() + ", finalizers: [example.com/mine]"
	add := func(by, try, harmless string, how how, after func(*hostile) error) {
		rows = append(rows, attempt{by: by, try: try, how: how, harmless: harmless, after: after, lifted: evilGoes})
	}
	const back, bounded = "its GPUs are given back", "it ends within 10 minutes"
	add("tenant", "deleting a pod of others that has a finalizer of somebody's", back,
		all(aloneRuns(finalizer, ""), deletes(evilPod)), givenBack)
	add("tenant", "deleting a pod of others that has a finalizer, in the foreground", back,
		all(aloneRuns(finalizer, ""), deletes(evilPod, client.PropagationPolicy(metav1.DeletePropagationForeground))),
		givenBack)
	add("tenant", "deleting a pod of others and orphaning what is below it", back,
		all(aloneRuns(annotated(), ""), deletes(evilPod, client.PropagationPolicy(metav1.DeletePropagationOrphan))),
		givenBack)
	add("tenant", "deleting a pod of others without a grace period", back,
		all(aloneRuns(annotated(), "terminationGracePeriodSeconds: 5, "), deletes(evilPod, client.GracePeriodSeconds(0))),
		givenBack)
	add("tenant", "deleting a pod of others with a grace period of a year", bounded,
		all(aloneRuns(annotated(stubbornly), aYear), deletes(evilPod, client.GracePeriodSeconds(years))),
		podIs("evil", ending))
	add("tenant", "evicting a pod of others with a grace period of a year", bounded,
		all(aloneRuns(annotated(stubbornly), aYear), below("eviction", evilPod,
			fmt.Sprintf("{apiVersion: policy/v1, kind: Eviction, metadata: {name: evil, namespace: $NS}, deleteOptions: "+
				"{gracePeriodSeconds: %d}}", years))), podIs("evil", ending))
	short := rqv1.AnnotationMaxDuration + ": 2s"
	add("tenant", "outliving max-duration by a grace period of a year, with a pod of others", bounded,
		aloneRuns(annotated(stubbornly, short), aYear), podIs("evil", ending))
	add("chief", "a PodDisruptionBudget over a pod of others whose time is over", back,
		all(creates("{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: evil, namespace: $NS}, "+
			"spec: {minAvailable: 100%, selector: {}}}"), as("tenant", aloneRuns(annotated(short), ""))), givenBack)
	add("tenant", "filling a pod of others until nothing can be written on it", back+" when its time is over",
		all(aloneRuns(annotated(rqv1.AnnotationMaxDuration+": 15s"), ""), fills(evilPod)), givenBack)
	return rows
}

// attemptsOnOthers are for what is others': names, domains and nodes.
func attemptsOnOthers() (rows []attempt) {
	add := func(try, harmless string, how how, after func(*hostile) error) {
		rows = append(rows, attempt{by: "tenant", try: try, how: how, harmless: harmless, after: after,
			lifted: evilGoes})
	}
	add("a Run that has the name of one which is to stand for a pod of others",
		"the pod stays Pending, and is told that the Run is somebody else's",
		all(func(h *hostile, as client.Client) error {
			return runs("{metadata: {name: "+h.evilRun()+"}, spec: {suspend: true}}")(h, as)
		}, alone("annotations: {"+owned+"}", with("8"))), told("evil", "is somebody else's"))
	const away = "stays Pending, and is told to name pods of its own namespace"
	says := told("evil", "requires pods of other namespaces to keep away")
	const labeled = "annotations: {" + owned + "}, labels: {jobset.sigs.k8s.io/job-key: mine}, ownerReferences: " +
		"[{apiVersion: batch/v1, kind: Job, name: evil, controller: true, uid: '%s'}]"
	const apart = "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: " +
		"fabric.domain, namespaceSelector: {}, labelSelector: {matchExpressions: " +
		"[{key: jobset.sigs.k8s.io/job-key, operator: %s}%s]}}]}}, "
	const others = ", {key: jobset.sigs.k8s.io/job-key, operator: NotIn, values: [mine]}"
	byJob := func(spec string) how {
		return func(h *hostile, as client.Client) error {
			job := h.object("{apiVersion: batch/v1, kind: Job, metadata: {name: evil, namespace: $NS}, spec: {suspend: true, " +
				"template: {metadata: {labels: {jobset.sigs.k8s.io/job-key: mine}}, spec: {restartPolicy: Never, " +
				"containers: [{name: a, image: b}]}}}}")
			if err := as.Create(h.t.Context(), job); err != nil {
				return err
			}
			return alone(fmt.Sprintf(labeled, job.GetUID()), spec+with("8"))(h, as)
		}
	}
	add("a pod of a plain Job, with what JobSet writes on its pods, that keeps all JobSets' away", away,
		byJob(fmt.Sprintf(apart, "Exists", others)), says)
	add("a pod of a plain Job that keeps one JobSet's pods away", away,
		byJob(fmt.Sprintf(apart, "In, values: [yours]", "")), says)
	add("a pod of others that keeps all pods away", away, alone("annotations: {"+owned+"}", "affinity: {podAntiAffinity: "+
		"{requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: fabric.domain, namespaceSelector: {}, "+
		"labelSelector: {}}]}}, "+with("8")), says)
	add("a pod for another scheduler, on a node of its choice, with more GPUs than numbers have",
		"it is where it says, and concerns nobody elsewhere",
		creates("{apiVersion: v1, kind: Pod, metadata: {name: evil, namespace: $NS}, spec: {schedulerName: nobody, "+
			"nodeName: $NODE, containers: [{name: a, image: b, resources: {limits: {nvidia.com/gpu: '9223372036854775807'}}}, "+
			"{name: b, image: b, resources: {limits: {nvidia.com/gpu: '9223372036854775807'}}}]}}"),
		podIs("evil", func(pod *corev1.Pod) error {
			if pod.Spec.NodeName == "" {
				return errors.New("it has no node")
			}
			return nil
		}))
	return rows
}
