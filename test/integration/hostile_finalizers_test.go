package integration

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

const (
	// mine is a finalizer that nobody takes off, and kept a change that adds it.
	mine = "finalizers: [example.com/mine]"
	kept = "{metadata: {" + mine + "}}"
	// evilsRun is the Run that stands for a pod or a group that is called evil.
	evilsRun = "rq.davidlangworthy.io/v1/Run $NS "
)

// attemptsToKeepObjects add finalizers to what is not theirs to write.
func attemptsToKeepObjects() (rows []attempt) {
	deny := func(by, try, resource, what string) {
		rows = append(rows, attempt{by: by, try: "a finalizer on " + try, how: patches(what, kept),
			refused: []string{fmt.Sprintf("User %q cannot patch resource %q", by, resource)}})
	}
	for _, by := range []string{"tenant", "chief", "pupil", "binder", "treasurer", "auditor"} {
		deny(by, "a Lease of a pod of others", "leases", "rq.davidlangworthy.io/v1/Lease $NS theirs-0")
		deny(by, "a Reservation of a pod of others", "reservations", "rq.davidlangworthy.io/v1/Reservation $NS theirs-r0")
	}
	for _, by := range slices.Concat(roles, []string{"viewer", "stranger"}) {
		deny(by, "a pod of others", "pods", theirsPod)
		deny(by, "the Run of others' pods", "runs", theirsRun)
	}
	return rows
}

// evilGroup are pods of 4 GPUs each that are a group of two, with more metadata, all of which run in the end.
func evilGroup(metadata string) how {
	return func(h *hostile, as client.Client) error {
		if err := alone(evilMember(metadata), with("4"))(h, as); err != nil {
			return err
		}
		if err := anotherEvil("evil-1", metadata)(h, as); err != nil {
			return err
		}
		return running(h.groupRun("", "Group", "evil"))(h, as)
	}
}

func evilMember(metadata string) string {
	return "annotations: {" + owned + ", " + rqv1.AnnotationGroup + ": evil, " + rqv1.AnnotationGroupSize + ": '2'}" +
		metadata
}

// anotherEvil is one more pod of that group.
func anotherEvil(name, metadata string) how {
	return creates(foreignText(name, evilMember(metadata), with("4")))
}

// open is an error unless that group pays for so many GPUs, and for no more.
func open(gpus int32) func(h *hostile) error {
	return func(h *hostile) error {
		want := map[string]int32{}
		if gpus > 0 {
			want["team/all own Active"] = gpus
		}
		return differs(want, h.payers(h.groupRun("", "Group", "evil")))
	}
}

// unpromised is an error while a Reservation of the Run of pod evil has not ended.
func unpromised(h *hostile) error {
	list := &rqv1.ReservationList{}
	if err := h.api.List(context.Background(), list, client.InNamespace(h.namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		if r := &list.Items[i]; r.Spec.RunRef.Name == h.evilRun() && !r.Ended() {
			return fmt.Errorf("Reservation %s is %s", r.Name, r.Status.State)
		}
	}
	return nil
}

// everythingGoes takes all finalizers off that these attempts have added, and has all pods of theirs be gone.
func everythingGoes(h *hostile, as client.Client) error {
	free := "{metadata: {finalizers: null}}"
	for _, run := range []string{h.evilRun(), h.groupRun("", "Group", "evil")} {
		if err := client.IgnoreNotFound(patches(evilsRun+run, free)(h, as)); err != nil {
			return err
		}
	}
	for _, pod := range []string{"evil-1", "evil-2"} {
		for _, do := range []how{patches("v1/Pod $NS "+pod, free), deletes("v1/Pod $NS "+pod, client.GracePeriodSeconds(0))} {
			if err := client.IgnoreNotFound(do(h, as)); err != nil {
				return err
			}
		}
	}
	return evilGoes(h, as)
}

// attemptsByFinalizers keep objects that are to go: a pod of others, one of a group or all of it, and their Runs.
// Nobody takes the finalizers off.
func attemptsByFinalizers() (rows []attempt) {
	add := func(by, try, harmless string, how how, after func(*hostile) error) {
		rows = append(rows, attempt{by: by, try: try, how: how, harmless: harmless, after: after, lifted: everythingGoes})
	}
	const back = "its GPUs are given back"
	held := "annotations: {" + owned + "}, " + mine
	ofRun := func(do func(run string) how) how {
		return func(h *hostile, as client.Client) error { return do(h.evilRun())(h, as) }
	}
	add("tenant", "a finalizer on a pod of others that runs, which is deleted then", back,
		all(aloneRuns("annotations: {"+owned+"}", ""), patches(evilPod, kept), deletes(evilPod)), givenBack)
	add("tenant", "evicting a pod of others that has a finalizer", back,
		all(aloneRuns(held, ""), below("eviction", evilPod,
			"{apiVersion: policy/v1, kind: Eviction, metadata: {name: evil, namespace: $NS}}")), givenBack)
	add("tenant", "deleting a pod of others that has a finalizer, by force", back,
		all(aloneRuns(held, ""), deletes(evilPod, client.GracePeriodSeconds(0))), givenBack)
	add("tenant", "outliving max-duration by a finalizer, with a pod of others", back,
		aloneRuns("annotations: {"+owned+", "+rqv1.AnnotationMaxDuration+": 2s}, "+mine, ""), givenBack)
	add("tenant", "a finalizer on a pod of others that has succeeded", back, all(aloneRuns(held, ""),
		administrator(patches("status of "+evilPod, "{status: {phase: Succeeded}}")), deletes(evilPod)), givenBack)
	add("tenant", "deleting a pod of others that waits and has a finalizer", "nothing is promised to it any more",
		all(fullFleet(), alone(held, with("8")), promised, deletes(evilPod)), unpromised)
	for _, way := range []struct {
		words   string
		options []client.DeleteOption
	}{{"", nil}, {", by force", []client.DeleteOption{client.GracePeriodSeconds(0)}}} {
		one := all(evilGroup(", "+mine), deletes(evilPod, way.options...))
		add("tenant", "deleting one pod of a group of others that have finalizers"+way.words, "the other is paid for alone",
			one, open(4))
		add("tenant", "deleting a group of others that have finalizers"+way.words, back,
			all(one, deletes("v1/Pod $NS evil-1", way.options...)), open(0))
	}
	add("tenant", "one more pod of a group of others, one of which is there for ever",
		"it takes that one's rank, and both are paid for", all(evilGroup(", "+mine), deletes(evilPod),
			anotherEvil("evil-2", "")), open(8))
	for _, by := range []string{"tenant", "chief", "pupil"} {
		add(by, "a finalizer on the Run of a pod of others, which is deleted then", back,
			all(as("tenant", aloneRuns("annotations: {"+owned+"}", "")),
				ofRun(func(run string) how { return all(patches(evilsRun+run, kept), deletes(evilsRun+run)) })), givenBack)
	}
	add("tenant", "a finalizer on the Run of a pod of others, which goes", back,
		all(aloneRuns("annotations: {"+owned+"}", ""), ofRun(func(run string) how { return patches(evilsRun+run, kept) }),
			deletes(evilPod)), givenBack)
	const own = "v1/Pod $NS evil-0"
	rows = append(rows, attempt{by: "tenant", try: "deleting the pod of its own Run that waits and has a finalizer",
		how: all(fullFleet(), runs("{}"), podThere("evil-0"), patches(own, kept), deletes(own),
			goesAtTheEnd(own)), harmless: "its Run says which pod keeps the name of the one that it lacks",
		after: saying("evil", rqv1.RunPending, "pod evil-0 was deleted before it had a node; another of its name can be "+
			"created once its finalizers are taken off: example.com/mine")})
	waits := alone("annotations: {"+owned+"}", with("8"))
	again := creates(foreignText("evil", "annotations: {"+owned+"}", with("8")))
	const reservation = "rq.davidlangworthy.io/v1/Reservation"
	add("root", "a finalizer on a Reservation of a pod of others, which goes and comes again",
		"the Run of the next pod is promised a start", all(as("tenant", all(fullFleet(), waits, promised)),
			withFirst(reservation, func(name string) how {
				h := reservation + " $NS " + name
				return all(patches(h, kept), goesAtTheEnd(h))
			}), as("tenant", all(deletes(evilPod), evilIsGone, again))),
		func(h *hostile) error { return promisedNow(h) })
	return rows
}

// promised waits until pod evil is promised a start.
func promised(h *hostile, _ client.Client) error {
	return waitFor(h.t, "what an attempt waits for", patience, func() error { return promisedNow(h) })
}

// promisedNow is an error unless the Run of pod evil waits, and a Reservation of it has not ended.
func promisedNow(h *hostile) error {
	run, err := h.get(h.evilRun())
	if err != nil {
		return err
	}
	list := &rqv1.ReservationList{}
	if err := h.api.List(context.Background(), list, client.InNamespace(h.namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		r := &list.Items[i]
		if r.Labels[rqv1.LabelRunUID] == string(run.UID) && r.DeletionTimestamp == nil && !r.Ended() {
			return nil
		}
	}
	return fmt.Errorf("its Run is %s: %s; of %d Reservations none is its own", run.Status.Phase, run.Status.Message,
		len(list.Items))
}

// evilIsGone waits until pod evil and its Run are gone.
func evilIsGone(h *hostile, _ client.Client) error {
	return waitFor(h.t, "what an attempt waits for", patience, func() error {
		if _, err := h.pod("evil"); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the pod is there: %v", err)
		}
		if _, err := h.get(h.evilRun()); !apierrors.IsNotFound(err) {
			return fmt.Errorf("its Run is there: %v", err)
		}
		return nil
	})
}

// goesAtTheEnd takes the finalizers off an object when the test ends.
func goesAtTheEnd(what string) how {
	return func(h *hostile, _ client.Client) error {
		h.t.Cleanup(func() { _ = patches(what, "{metadata: {finalizers: null}}")(h, h.api) })
		return nil
	}
}
