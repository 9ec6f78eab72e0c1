package controllers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/reconcile"
)

// podWriter makes the pods of Runs and their Services, and ends pods.
type podWriter struct {
	kube   kubernetes.Interface
	clock  clock.PassiveClock
	untold *untold
	unseen *unseen
	events events.EventRecorder
}

// CreateService makes a Run's Service, unless it is there.
func (p podWriter) CreateService(ctx context.Context, service *corev1.Service) error {
	services := p.kube.CoreV1().Services(service.Namespace)
	_, err := services.Create(ctx, service, metav1.CreateOptions{})
	return made(ctx, "Service", service, err, services.Get)
}

// CreatePods makes pods, unless they are there, until one is not taken.
func (p podWriter) CreatePods(ctx context.Context, wanted []*corev1.Pod) error {
	var failed atomic.Bool
	return inParallel(len(wanted), func(i int) error {
		if failed.Load() {
			return nil // what is held against one pod of a gang is held against all
		}
		if p.unseen.waits(wanted[i]) {
			return nil
		}
		pods := p.kube.CoreV1().Pods(wanted[i].Namespace)
		err := p.unseen.once(making(wanted[i]), func() error {
			_, err := pods.Create(ctx, wanted[i], metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				p.unseen.forget(making(wanted[i])) // it may be gone again
			}
			return made(ctx, "Pod", wanted[i], err, pods.Get)
		})
		if err != nil {
			failed.Store(true)
		}
		return err
	})
}

// DeletePods deletes pods with notice, unless they are gone or others have their names. A notice that is refused, or
// fails for long, keeps no pod from going: whoever may edit a pod could see to it that it does.
func (p podWriter) DeletePods(ctx context.Context, deletions []lifecycle.Deletion) error {
	errs := make([]error, len(deletions))
	err := inParallel(len(deletions), func(i int) error {
		d := &deletions[i]
		errs[i] = p.unseen.once(ends(d), func() error { return p.deletePod(ctx, d) })
		return errs[i]
	})
	logDeletions(ctx, deletions, errs)
	p.tellUnended(deletions, errs)
	return err
}

// tellUnended tells by an event of the first pod that is to end and that the API server refuses to delete: its Run may
// be gone, which would tell it.
func (p podWriter) tellUnended(deletions []lifecycle.Deletion, errs []error) {
	first := slices.IndexFunc(errs, reconcile.Refused)
	if first < 0 || p.events == nil {
		return
	}
	d := &deletions[first]
	about := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: d.Pod.Namespace, Name: d.Pod.Name, UID: d.Pod.UID}}
	about.APIVersion, about.Kind = "v1", "Pod"
	p.events.Eventf(about, nil, corev1.EventTypeWarning, "DeletionRefused", "Reconcile",
		"the scheduler is to delete the pod, since %s, and the API server refuses that: %s", d.Why, errs[first].Error())
}

// deletePod deletes one of them.
func (p podWriter) deletePod(ctx context.Context, d *lifecycle.Deletion) error {
	err := p.tellEnd(ctx, d)
	if p.untold.waits(d.Pod.UID, err, p.clock.Now()) {
		return err
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "A pod could not be told that it ends; it is deleted all the same", "pod",
			klog.KObj(d.Pod))
	}
	if !d.By.IsZero() {
		err = p.endInPlace(ctx, d)
		if err == nil {
			p.untold.forget(d.Pod.UID)
			return nil
		}
		if p.untold.waits(d.Pod.UID, err, p.clock.Now()) {
			return err
		}
	}
	uid := metav1.NewUIDPreconditions(string(d.Pod.UID))
	options := metav1.DeleteOptions{Preconditions: uid, GracePeriodSeconds: d.GraceSeconds}
	pods := p.kube.CoreV1().Pods(d.Pod.Namespace)
	err = pods.Delete(ctx, d.Pod.Name, options)
	if reconcile.TooLarge(err) { // not even when it is to end fits into it any more: its GPUs are held for its own grace
		options.GracePeriodSeconds = new(int64)
		err = pods.Delete(ctx, d.Pod.Name, options)
	}
	err = ignore(err, apierrors.IsNotFound, apierrors.IsConflict)
	if err == nil {
		p.untold.forget(d.Pod.UID)
	}
	return err
}

// logDeletions says which pods go and why, in a line for each reason, and which do not.
func logDeletions(ctx context.Context, deletions []lifecycle.Deletion, errs []error) {
	type fate struct{ why, what string }
	pods, first := map[fate][]klog.ObjectRef{}, map[fate]error{}
	for i := range deletions {
		of := fate{deletions[i].Why, "Pods are deleted"}
		if errs[i] != nil {
			of.what = "Pods could not be deleted"
		}
		pods[of] = append(pods[of], klog.KObj(deletions[i].Pod))
		first[of] = cmp.Or(first[of], errs[i])
	}
	byWhy := func(a, b fate) int { return cmp.Or(cmp.Compare(a.why, b.why), cmp.Compare(a.what, b.what)) }
	for _, of := range slices.SortedFunc(maps.Keys(pods), byWhy) {
		all := pods[of]
		values := []any{"why", of.why, "number", len(all), "pods", all[:min(4, len(all))]}
		if err := first[of]; err != nil {
			klog.FromContext(ctx).Error(err, of.what, values...)
		} else {
			klog.FromContext(ctx).Info(of.what, values...)
		}
	}
}

// endInPlace has the kubelet end a pod that keeps its object, and with it its log.
func (p podWriter) endInPlace(ctx context.Context, d *lifecycle.Deletion) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": d.Pod.UID,
			"annotations": map[string]string{rqv1.AnnotationEndsBy: d.By.UTC().Format(time.RFC3339)}},
		"spec": map[string]any{"activeDeadlineSeconds": rank.EndsNow}})
	if err != nil {
		return fmt.Errorf("end of pod %s: %w", d.Pod.Name, err)
	}
	pods, how := p.kube.CoreV1().Pods(d.Pod.Namespace), types.MergePatchType
	_, err = pods.Patch(ctx, d.Pod.Name, how, patch, metav1.PatchOptions{})
	return ignore(err, apierrors.IsNotFound, apierrors.IsConflict)
}

// byScheduler is the reason that pods are given which others have made, whatever they are deleted for: a policy of
// their controller's can name it (R42).
const byScheduler = "DeletionByJobtree"

// tellEnd tells a pod that it is about to end, where it is to know.
func (p podWriter) tellEnd(ctx context.Context, d *lifecycle.Deletion) error {
	switch {
	case d.Notice != nil:
		return p.giveNotice(ctx, d.Pod, d.Notice)
	case d.Tell != "":
		return p.tell(ctx, d)
	}
	return nil
}

// giveNotice tells a pod, by its condition DisruptionTarget, that it is about to end, and why. A pod that is gone, or
// that another has taken the name of, needs no notice.
func (p podWriter) giveNotice(ctx context.Context, pod *corev1.Pod, notice *lifecycle.Notice) error {
	reason := string(notice.Reason)
	if rank.Theirs(pod) {
		reason = byScheduler
	}
	return p.disrupt(ctx, pod, reason, notice.Message, "")
}

// tell tells a pod that others have made why it ends. One whose node is lost has failed: nobody is there to say so, and
// its controller may wait for that before it makes another, as the pod garbage collector knows.
func (p podWriter) tell(ctx context.Context, d *lifecycle.Deletion) error {
	phase := corev1.PodPhase("")
	if d.If == lifecycle.NodeLost {
		phase = corev1.PodFailed
	}
	return p.disrupt(ctx, d.Pod, byScheduler, d.Tell, phase)
}

// TellPods tells pods of others why they wait. One that does not take it, or that is gone, waits all the same; one that
// has been bound meanwhile does not.
func (p podWriter) TellPods(ctx context.Context, words []lifecycle.Word) error {
	_, _, err := p.tellEach(ctx, words)
	return err
}

// tellEach is TellPods, and returns what has been taken, and whether a pod was not as it had been read any more.
func (p podWriter) tellEach(ctx context.Context, words []lifecycle.Word) (taken []lifecycle.Word, stale bool,
	err error) {
	took, changed := make([]bool, len(words)), make([]bool, len(words))
	err = inParallel(len(words), func(i int) error {
		w, now := &words[i], metav1.NewTime(p.clock.Now())
		of := metav1.Preconditions{UID: &w.Pod.UID, ResourceVersion: &w.Pod.ResourceVersion}
		err := p.condition(ctx, w.Pod, of, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: w.Reason, Message: w.Message, LastProbeTime: now, LastTransitionTime: now}, "")
		took[i], changed[i] = err == nil, apierrors.IsConflict(err)
		return ignore(err, reconcile.Refused, apierrors.IsNotFound, apierrors.IsConflict)
	})
	for i := range words {
		if took[i] {
			taken = append(taken, words[i])
		}
	}
	return taken, slices.Contains(changed, true), err
}

func (p podWriter) disrupt(ctx context.Context, pod *corev1.Pod, reason, message string, phase corev1.PodPhase) error {
	err := p.condition(ctx, pod, metav1.Preconditions{UID: &pod.UID}, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(p.clock.Now())}, phase)
	return ignore(err, apierrors.IsNotFound, apierrors.IsConflict)
}

// condition gives a pod of some metadata a condition and, unless it is empty, a phase.
func (p podWriter) condition(ctx context.Context, pod *corev1.Pod, of metav1.Preconditions, is corev1.PodCondition,
	phase corev1.PodPhase) error {
	status := map[string]any{"conditions": []corev1.PodCondition{is}}
	if phase != "" {
		status["phase"] = phase
	}
	patch, err := json.Marshal(map[string]any{"metadata": of, "status": status})
	if err != nil {
		return fmt.Errorf("condition %s of pod %s: %w", is.Type, pod.Name, err)
	}
	pods, how := p.kube.CoreV1().Pods(pod.Namespace), types.StrategicMergePatchType
	_, err = pods.Patch(ctx, pod.Name, how, patch, metav1.PatchOptions{}, "status")
	return err
}
