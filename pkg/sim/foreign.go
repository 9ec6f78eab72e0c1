package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// Foreign is a pod that somebody else makes for a Run of pods.
type Foreign struct {
	Run *rqv1.Run
	// Slot is which of its pods it is, and Any says that it may have any rank.
	Slot int
	Any  bool
	// Grace is how long it takes to end, in seconds.
	Grace int64
	// Affinity is what it wants of the nodes and pods around it.
	Affinity *corev1.Affinity
	// Spread is over which nodes it is to be spread with the Run's others.
	Spread []corev1.TopologySpreadConstraint
	// Claim is the PersistentVolumeClaim that it uses; empty for none.
	Claim string
	// CPU is what it asks for beside GPUs; empty for nothing.
	CPU string
}

// The annotations of such a pod.
const (
	forRun, forSlot, anyRank = "sim/run", "sim/slot", "sim/any"
)

// Make makes such a pod.
func (c *Cluster) Make(f Foreign) {
	uid, gpus := c.UID(), resource.NewQuantity(int64(*f.Run.Spec.Resources.GPUsPerPod), resource.DecimalSI)
	limits := corev1.ResourceList{corev1.ResourceName(c.Args.GPUResource[0]): *gpus}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, UID: uid,
		Name:              fmt.Sprintf("%s-%d-%s", f.Run.Name, f.Slot, uid),
		CreationTimestamp: metav1.NewTime(c.Now.Truncate(time.Second)),
		Annotations:       map[string]string{forRun: string(f.Run.UID), forSlot: strconv.Itoa(f.Slot)}},
		Spec: corev1.PodSpec{SchedulerName: rqv1.SchedulerName, TerminationGracePeriodSeconds: &f.Grace, Affinity: f.Affinity,
			TopologySpreadConstraints: f.Spread,
			Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Limits: limits,
				Requests: limits}}}}}
	if f.CPU != "" {
		limits[corev1.ResourceCPU] = resource.MustParse(f.CPU)
	}
	if f.Any {
		pod.Annotations[anyRank] = "true"
	}
	if f.Claim != "" {
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: f.Claim}}}}
	}
	if c.Admits != nil {
		c.Admits(pod)
	}
	c.changed[f.Run.Name] = true
	c.SetPod(pod)
}

// MadeFor returns for which Run somebody else has made a pod, and as which of its pods; false for one that a Run made.
func MadeFor(pod *corev1.Pod) (run types.UID, slot int, ok bool) {
	of, ok := pod.Annotations[forRun]
	slot, err := strconv.Atoi(pod.Annotations[forSlot])
	return types.UID(of), slot, ok && err == nil
}

// offers returns the pods that somebody else has made for a Run and that have no rank.
func (c *Cluster) offers(run *rqv1.Run) (out []book.Offer) {
	for _, uid := range c.SortedPods() {
		pod := c.Pods[uid]
		of, slot, theirs := MadeFor(pod)
		if !theirs || of != run.UID || pod.Labels[rqv1.LabelRun] != "" || pod.DeletionTimestamp != nil ||
			rank.Ended(pod) {
			continue
		}
		if pod.Annotations[anyRank] != "" {
			slot = -1
		}
		out = append(out, book.Offer{Pod: pod, Rank: slot})
	}
	return out
}

// AdoptPods gives pods ranks, those that are there as they were seen.
func (s server) AdoptPods(_ context.Context, adopted []lifecycle.Adoption) error {
	for i := range adopted {
		a := &adopted[i]
		err := s.write(Creations, a.Pod.Name, func() {
			if s.Pods[a.Pod.UID] != a.Pod {
				return // it has changed
			}
			pod := a.Pod.DeepCopy()
			if pod.Labels == nil {
				pod.Labels = map[string]string{}
			}
			if pod.Annotations == nil {
				pod.Annotations = map[string]string{}
			}
			maps.Copy(pod.Labels, a.Labels)
			maps.Copy(pod.Annotations, a.Annotations)
			s.SetPod(pod)
			s.Queue[pod.UID] = true
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ReleasePods takes their ranks from pods.
func (s server) ReleasePods(_ context.Context, released []*corev1.Pod) error {
	for _, was := range released {
		err := s.write(Creations, was.Name, func() {
			stored := s.Pods[was.UID]
			if stored == nil {
				return
			}
			pod := stored.DeepCopy()
			maps.DeleteFunc(pod.Labels, func(key, _ string) bool { return strings.HasPrefix(key, rqv1.GroupName+"/") })
			delete(pod.Annotations, rqv1.AnnotationReplaces)
			s.release(pod)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// TellPods tells pods of others why they wait, those that take it.
func (s server) TellPods(_ context.Context, words []lifecycle.Word) error {
	for i := range words {
		stored := s.Pods[words[i].Pod.UID]
		if stored == nil {
			continue
		}
		err := s.write(Words, stored.Name, func() {
			pod := stored.DeepCopy()
			pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodScheduled
			})
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled,
				Status: corev1.ConditionFalse, Reason: words[i].Reason, Message: words[i].Message,
				LastProbeTime: metav1.NewTime(s.Now)})
			s.SetPod(pod)
		})
		if err != nil && !apierrors.IsForbidden(err) {
			return err
		}
	}
	return nil
}

// release stores a pod that has no rank any more: who watches those sees it go.
func (c *Cluster) release(pod *corev1.Pod) {
	was := c.Pods[pod.UID]
	withheld := c.withhold(pod.UID)
	c.podsOf.drop(was.Labels[rqv1.LabelRun], pod.UID)
	c.Pods[pod.UID] = pod
	if !withheld {
		c.tellGone(was)
	}
	c.Book.SetPod(pod)
	c.sawPod(was, pod)
}

// Slots returns which pods of a Run somebody else has made that are there, by slot.
func (c *Cluster) Slots(run types.UID) map[int][]*corev1.Pod {
	out := map[int][]*corev1.Pod{}
	for _, uid := range c.SortedPods() {
		if of, slot, ok := MadeFor(c.Pods[uid]); ok && of == run {
			out[slot] = append(out[slot], c.Pods[uid])
		}
	}
	return out
}

// Leftovers returns the pods that were made for Runs which are gone.
func (c *Cluster) Leftovers() []types.UID {
	runs := map[types.UID]bool{}
	for _, run := range c.Runs {
		runs[run.UID] = true
	}
	return slices.DeleteFunc(c.SortedPods(), func(uid types.UID) bool {
		of, _, ok := MadeFor(c.Pods[uid])
		return !ok || runs[of]
	})
}
