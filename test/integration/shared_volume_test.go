package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestRunsThatShareAVolume has Runs whose pods share a claim that is bound where the first of them goes, to a volume of
// one of two zones.
func TestRunsThatShareAVolume(t *testing.T) {
	t.Parallel()
	arguments := led("3s")
	arguments["noticePeriod"] = "2s"
	c := clusterForMany(t, withoutElection, arguments)
	(&site{cluster: c, t: t}).startScheduler()
	for name, tell := range map[string]func(*site){"free": startsInTheZoneThatDoes, "full": cutsInTheZoneThatDoes,
		"no zone": cutsInNoZone} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, c, 0, 0, 0)
			tell(s)
			s.settled()
		})
	}
}

// zones makes nodes, each a domain of its own, in the zone that its name begins with, and a claim with a volume in
// each of two zones that is not bound before a pod uses it.
func (s *site) zones(names ...string) {
	s.t.Helper()
	var nodes []corev1.Node
	for _, name := range names {
		nodes = append(nodes, *s.node(name, name))
		nodes[len(nodes)-1].Labels[zone] = s.namespace + "-" + name[:1]
	}
	s.load(nodes...)
	waits := storagev1.VolumeBindingWaitForFirstConsumer
	s.create(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
		Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &waits})
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	for _, in := range []string{s.namespace + "-a", s.namespace + "-b"} {
		s.create(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: in}, Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: modes, StorageClassName: s.namespace,
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: zone, Operator: corev1.NodeSelectorOpIn, Values: []string{in}}}}}}},
		}})
	}
	s.create(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: modes, StorageClassName: &s.namespace,
			Resources: corev1.VolumeResourceRequirements{Requests: size}}})
}

// boundIn asserts in which zone the claim is bound; empty while it is not to be.
func (s *site) boundIn(zone string) {
	s.t.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	if err := s.api.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "data"}, claim); err != nil {
		s.t.Fatal(err)
	}
	same(s.t, "its volume", zone, strings.TrimPrefix(claim.Spec.VolumeName, s.namespace+"-"))
}

// startsInTheZoneThatDoes has a Run need two domains: it would be in the first of each zone, starts in those of one,
// and nobody is cut in the other.
func startsInTheZoneThatDoes(s *site) {
	s.zones("a0", "a1", "b0", "b1")
	s.standoff("a1")
	s.submit("train", 12, s.by("wants"), inPods(4), inGroups(4), otherRules["volume"].ask)
	s.await("train", rqv1.RunRunning, "bound 12 GPUs")
	got := s.nodesOf("train")
	same(s.t, "its pods in b", 3, got["b0"]+got["b1"])
	s.boundIn("b")
	same(s.t, "how the one in a goes on", map[rqv1.ClosureReason]int{"": 1}, s.closures("holder-a1"))
}

// cutsInTheZoneThatDoes has all nodes be held, of which two are enough in one zone alone.
func cutsInTheZoneThatDoes(s *site) {
	s.zones("a0", "b0", "b1")
	s.standoff("a0", "b0", "b1")
	s.submit("train", 16, s.by("wants"), inPods(8), inGroups(8), otherRules["volume"].ask)
	s.await("train", rqv1.RunRunning, "bound 16 GPUs")
	same(s.t, "its nodes", map[string]int{"b0": 1, "b1": 1}, s.nodesOf("train"))
	s.boundIn("b")
	for _, name := range []string{"holder-b0", "holder-b1"} {
		same(s.t, "how "+name+" ended", map[rqv1.ClosureReason]int{rqv1.ClosedRandomPreempt: 1}, s.closures(name))
	}
	same(s.t, "how the one in a goes on", map[rqv1.ClosureReason]int{"": 1}, s.closures("holder-a0"))
}

// cutsInNoZone has all nodes be held, and too few in each zone.
func cutsInNoZone(s *site) {
	s.zones("a0", "b0")
	s.standoff("a0", "b0")
	s.submit("train", 16, s.by("wants"), inPods(8), inGroups(8), otherRules["volume"].ask)
	const rule = "node(s) didn't find available persistent volumes to bind"
	s.await("train", rqv1.RunPending, rule)
	throughout(s.t, 8*time.Second, "nobody is cut", func() error {
		for _, name := range []string{"holder-a0", "holder-b0"} {
			if run, err := s.get(name); err != nil || run.Status.Phase != rqv1.RunRunning {
				return fmt.Errorf("%s is %s: %w", name, run.Status.Phase, err)
			}
		}
		return nil
	})
	eventually(s.t, "the rule is told", func() error {
		run, err := s.get("train")
		if err == nil && (run.Status.Refusal == nil || run.Status.Refusal.Rule != rule || run.Status.Refusal.Node == "") {
			err = fmt.Errorf("it is refused for %+v", run.Status.Refusal)
		}
		return err
	})
	s.boundIn("")
}
