package integration

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// otherRule is a rule that keeps a Run from nodes which have GPUs for it.
type otherRule struct {
	// block has a node turn down what ask asks for, and prepare makes what else the Run needs.
	prepare func(s *site)
	block   func(s *site, node string)
	ask     func(*rqv1.Run)
	says    string
}

// zone is a label that nodes may have.
const zone = corev1.LabelTopologyZone

var otherRules = map[string]otherRule{
	"cpu": {
		block: func(s *site, node string) { s.create(s.bystander("daemon-"+node, node, "60", 0)) },
		ask:   requesting(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")}), says: "Insufficient cpu",
	},
	"port": {
		block: func(s *site, node string) { s.create(s.bystander("daemon-"+node, node, "1", 8765)) },
		ask: func(r *rqv1.Run) {
			template(r).Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8765, HostPort: 8765}}
		}, says: "node(s) didn't have free ports for the requested pod ports",
	},
	"volume": {
		prepare: func(s *site) { s.volumeIn("near") },
		block: func(s *site, node string) {
			edit(s, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-" + node}},
				func(n *corev1.Node) { n.Labels[zone] = "far" })
		},
		ask: func(r *rqv1.Run) {
			template(r).Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
		}, says: "node(s) didn't match PersistentVolume's node affinity",
	},
	"anti-affinity": {
		block: func(s *site, node string) {
			pod := s.bystander("daemon-"+node, node, "1", 0)
			pod.Labels = map[string]string{"app": "noisy"}
			s.create(pod)
		},
		ask: func(r *rqv1.Run) {
			template(r).Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "noisy"}},
					TopologyKey:   corev1.LabelHostname}}}}
		}, says: "node(s) didn't match pod anti-affinity rules",
	},
}

func requesting(list corev1.ResourceList) func(*rqv1.Run) {
	return func(r *rqv1.Run) { template(r).Spec.Containers[0].Resources.Requests = list }
}

// bystander is a pod on a node that holds CPU and, unless it is 0, a port.
func (s *site) bystander(name, node, cpu string, port int32) *corev1.Pod {
	pod := s.foreign(name, node, 0)
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
	if port > 0 {
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: port, HostPort: port}}
	}
	return pod
}

// volumeIn makes a claim, data, of a volume in a zone. Nodes are in zone near from then on.
func (s *site) volumeIn(where string) {
	s.t.Helper()
	nodes := &corev1.NodeList{}
	if err := s.api.List(s.t.Context(), nodes, client.MatchingLabels{"gpu.flavor": s.flavor}); err != nil {
		s.t.Fatal(err)
	}
	for i := range nodes.Items {
		edit(s, &nodes.Items[i], func(n *corev1.Node) { n.Labels[zone] = "near" })
	}
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	none := ""
	s.create(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, Spec: corev1.PersistentVolumeSpec{
		Capacity: size, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}},
		ClaimRef:               &corev1.ObjectReference{Namespace: s.namespace, Name: "data"},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: zone, Operator: corev1.NodeSelectorOpIn,
				Values: []string{where}}}}}}},
	}})
	s.create(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources:  corev1.VolumeResourceRequirements{Requests: size},
			VolumeName: s.namespace, StorageClassName: &none}})
	eventually(s.t, "the claim", func() error {
		claim := &corev1.PersistentVolumeClaim{}
		err := s.api.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "data"}, claim)
		if err == nil && claim.Status.Phase != corev1.ClaimBound {
			err = fmt.Errorf("it is %s", claim.Status.Phase)
		}
		return err
	})
}

// underOtherRules have other rules than those about GPUs keep a Run from nodes. With free GPUs it starts on the
// node that does not; on a full fleet nobody is cut for it, and it is told which rule stands in its way; and if one
// of two full domains would do, others are cut only there. A lost rank goes where it is accepted, and a spare
// elsewhere does not give way for it.
var underOtherRules = map[string]func(*site, otherRule){"free": startsElsewhere, "full": cutsNobody,
	"two domains": cutsWhereItMay, "loss": replacedWhereAccepted, "spare": spareStandsBy}

func (s *site) ready(rule otherRule) {
	if rule.prepare != nil {
		rule.prepare(s)
	}
}

func startsElsewhere(s *site, rule otherRule) {
	s.addNodes("d", 3)
	s.ready(rule)
	rule.block(s, "d-0")
	rule.block(s, "d-1")
	s.fund("a", s.envelope("all", 64))
	s.submit("train", 8, s.by("a"), inPods(8), rule.ask)
	s.await("train", rqv1.RunRunning, "bound 8 GPUs")
	same(s.t, "its nodes", map[string]int{"d-2": 1}, s.nodesOf("train"))
}

// standoff has a Run of its own hold each node of a domain.
func (s *site) standoff(nodes ...string) {
	s.fund("holder", s.envelope("all", 64))
	s.fund("wants", s.envelope("all", 64))
	s.amendAll(func(e *rqv1.Envelope) { e.Sharing = rqv1.SharingNone }, "holder", "wants")
	for _, node := range nodes {
		name := "holder-" + node
		s.submit(name, 8, s.by("holder"), inPods(8), checkpoint(time.Hour), func(r *rqv1.Run) {
			template(r).Spec.NodeSelector = map[string]string{corev1.LabelHostname: s.namespace + "-" + node}
		})
		s.await(name, rqv1.RunRunning, "bound 8 GPUs")
	}
}

func cutsNobody(s *site, rule otherRule) {
	s.addNodes("d", 2)
	s.ready(rule)
	s.standoff("d-0", "d-1")
	rule.block(s, "d-0")
	rule.block(s, "d-1")
	before := s.versions("holder-d-0")
	s.submit("train", 8, s.by("wants"), inPods(8), rule.ask)
	s.await("train", rqv1.RunPending, rule.says)
	throughout(s.t, 8*time.Second, "nobody is cut", func() error {
		all := &rqv1.ReservationList{}
		if err := s.api.List(s.t.Context(), all, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		for i := range all.Items {
			if len(all.Items[i].Status.Cuts) > 0 {
				return fmt.Errorf("%s cuts %+v", all.Items[i].Name, all.Items[i].Status.Cuts)
			}
		}
		for _, name := range []string{"holder-d-0", "holder-d-1"} {
			if run, err := s.get(name); err != nil || run.Status.Phase != rqv1.RunRunning {
				return fmt.Errorf("%s is %s: %w", name, run.Status.Phase, err)
			}
		}
		return nil
	})
	eventually(s.t, "the rule is told", func() error {
		run, err := s.get("train")
		if err == nil && (run.Status.Refusal == nil || !strings.Contains(run.Status.Refusal.Rule, rule.says)) {
			err = fmt.Errorf("it is refused for %+v", run.Status.Refusal)
		}
		return err
	})
	same(s.t, "how often the pods of others changed", before, s.versions("holder-d-0"))
}

func cutsWhereItMay(s *site, rule otherRule) {
	s.addNodes("a", 1)
	s.addNodes("b", 1)
	s.ready(rule)
	s.standoff("a-0", "b-0")
	rule.block(s, "a-0")
	s.submit("train", 8, s.by("wants"), inPods(8), rule.ask)
	s.await("train", rqv1.RunRunning, "bound 8 GPUs")
	same(s.t, "its nodes", map[string]int{"b-0": 1}, s.nodesOf("train"))
	same(s.t, "how the one in b ended", map[rqv1.ClosureReason]int{rqv1.ClosedRandomPreempt: 1}, s.closures("holder-b-0"))
	same(s.t, "how the one in a goes on", map[rqv1.ClosureReason]int{"": 1}, s.closures("holder-a-0"))
}

// replacedWhereAccepted has a rank be lost: its place is on the node that accepts it although another has GPUs.
func replacedWhereAccepted(s *site, rule otherRule) {
	s.addNodes("d", 1)
	s.ready(rule)
	s.fund("a", s.envelope("all", 64))
	s.submit("train", 8, s.by("a"), inPods(8), rule.ask)
	s.await("train", rqv1.RunRunning, "bound 8 GPUs")
	nodes := []corev1.Node{*s.node("d-1", "d"), *s.node("d-2", "d")}
	for i := range nodes {
		nodes[i].Labels[zone] = "near"
	}
	s.load(nodes...)
	rule.block(s, "d-1")
	s.delete(s.node("d-0", "d"))
	eventually(s.t, "the rank", func() error {
		if on := s.nodesOf("train"); on["d-2"] != 1 {
			return fmt.Errorf("it is on %v", on)
		}
		return nil
	})
	s.await("train", rqv1.RunRunning, "")
}

// spareStandsBy has a rank be lost whose spare is on a node that does not accept it any more, beside one that does: it
// goes there, and the spare stays.
func spareStandsBy(s *site, rule otherRule) {
	nodes := []corev1.Node{*s.node("d-0", "d"), *s.node("d-1", "d"), *s.node("d-2", "d")}
	for i := range nodes {
		nodes[i].Labels[zone] = "near"
	}
	s.load(nodes...)
	if rule.prepare != nil {
		rule.prepare(s)
	}
	s.fund("a", s.envelope("all", 64))
	s.submit("train", 8, s.by("a"), inPods(8), inGroups(8), withSpares(8), rule.ask)
	s.await("train", rqv1.RunRunning, "bound 8 GPUs")
	s.settled()
	spare := s.podsOf("train")["train-s0"]
	rule.block(s, strings.TrimPrefix(spare.Spec.NodeName, s.namespace+"-"))
	lost := s.podsOf("train")["train-0"].Spec.NodeName
	s.delete(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: lost}})
	eventually(s.t, "the rank", func() error {
		if on := s.podsOf("train")["train-0"].Spec.NodeName; on == "" || on == lost || on == spare.Spec.NodeName {
			return fmt.Errorf("it is on %q", on)
		}
		return nil
	})
	if uid := s.podsOf("train")["train-s0"].UID; uid != spare.UID {
		s.t.Error("its spare gave way, and could not have helped")
	}
	s.await("train", rqv1.RunRunning, "")
}
