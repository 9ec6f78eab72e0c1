package integration

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	yamls "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/group"
)

// workload is one of a kind whose controller this cluster has not.
type workload struct {
	schema.GroupVersionKind
	// group is what its pods are a group by, and named how people call its Run.
	group group.Key
	named string
	// beside is how many of its pods ask for no GPUs and start with the others.
	beside int
}

// workloads are in testdata/kinds, each in a file named after its kind. Each asks for two pods of 8 GPUs.
var workloads = []workload{
	{schema.GroupVersionKind{Group: "ray.io", Version: "v1", Kind: "RayCluster"},
		group.Key{API: "ray.io", Kind: "RayCluster", Name: "tune"}, "raycluster/tune", 1},
	{schema.GroupVersionKind{Group: "kubeflow.org", Version: "v2beta1", Kind: "MPIJob"},
		group.Key{API: "kubeflow.org", Kind: "MPIJob", Name: "hpl"}, "mpijob/hpl", 1},
	{schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJob"},
		group.Key{API: "kubeflow.org", Kind: "PyTorchJob", Name: "bert"}, "pytorchjob.kubeflow.org/bert", 0},
	{schema.GroupVersionKind{Group: "trainer.kubeflow.org", Version: "v1alpha1", Kind: "TrainJob"},
		group.Key{API: "jobset.x-k8s.io", Kind: "JobSet", Name: "llm"}, "trainjob/llm", 0},
	{schema.GroupVersionKind{Group: "leaderworkerset.x-k8s.io", Version: "v1", Kind: "LeaderWorkerSet"},
		group.Key{API: "leaderworkerset.x-k8s.io", Kind: "LeaderWorkerSet", Name: "serve-0"}, "leaderworkerset/serve", 0},
}

// TestKinds: workloads of the kinds that people have wait as a gang and start as one, with a Lease for each pod that
// asks for GPUs; a lost node costs one replacement, and when the object is deleted nothing is left. Their pods are as
// their controllers write them.
func TestKinds(t *testing.T) {
	t.Parallel()
	c := liveCluster(t)
	for _, w := range workloads {
		serve(t, c, w.GroupVersionKind)
	}
	for _, w := range workloads {
		t.Run(w.Kind, func(t *testing.T) {
			t.Parallel()
			w.live(newSite(t, c, 1, 4, 64))
		})
	}
}

// serve has the API server serve objects of a kind, whatever is in them.
func serve(t *testing.T, c *cluster, kind schema.GroupVersionKind) {
	t.Helper()
	singular := strings.ToLower(kind.Kind)
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(fmt.Appendf(nil, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.%[2]s, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: %[2]s
  scope: Namespaced
  names: {kind: %[3]s, listKind: %[3]sList, plural: %[1]ss, singular: %[1]s}
  versions:
  - name: %[4]s
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, singular, kind.Group, kind.Kind, kind.Version), &crd.Object); err != nil {
		t.Fatal(err)
	}
	if err := c.api.Create(t.Context(), crd); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// made is a workload that has been made in a site, with the pods that the test makes in its controller's place.
type made struct {
	*site
	object *unstructured.Unstructured
	pods   []*unstructured.Unstructured // as they are to be made
	names  []string                     // those that they have been made under
}

// makes makes a workload: its object, for which the site's owner pays, and then what its controller makes of it.
func (s *site) makes(w workload) *made {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "kinds", strings.ToLower(w.Kind)+".yaml"))
	if err != nil {
		s.t.Fatal(err)
	}
	m := &made{site: s}
	for documents := yamls.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		words := []string{"$flavor", s.flavor}
		if m.object != nil {
			words = append(words, "$uid", string(m.object.GetUID()))
		}
		object := &unstructured.Unstructured{}
		if err == nil {
			err = yaml.Unmarshal([]byte(strings.NewReplacer(words...).Replace(string(text))), &object.Object)
		}
		if err != nil {
			s.t.Fatal(err)
		}
		object.SetNamespace(s.namespace)
		switch {
		case m.object == nil:
			object.SetAnnotations(map[string]string{rqv1.AnnotationOwner: string(s.owner)})
			eventually(s.t, "making "+w.Kind, func() error { return s.api.Create(s.t.Context(), object) })
			m.object = object
		case object.GetKind() == "Pod":
			m.pods, m.names = append(m.pods, object), append(m.names, "")
		default:
			s.create(object)
		}
	}
	if err := m.tend(); err != nil {
		s.t.Fatal(err)
	}
	return m
}

// tend makes those pods that are not there, as their controller would.
func (m *made) tend() error {
	for i, pod := range m.pods {
		is := &corev1.Pod{}
		if m.names[i] != "" {
			err := m.api.Get(m.t.Context(), client.ObjectKey{Namespace: m.namespace, Name: m.names[i]}, is)
			if !apierrors.IsNotFound(err) {
				if err != nil {
					return err
				}
				continue
			}
		}
		pod = pod.DeepCopy()
		if err := m.api.Create(m.t.Context(), pod); err != nil {
			return err
		}
		m.names[i] = pod.GetName()
	}
	return nil
}

// withoutGPUs counts the bound pods of the site that ask for no GPUs and have not ended.
func (s *site) withoutGPUs() (bound int) {
	s.t.Helper()
	var pods corev1.PodList
	if err := s.api.List(s.t.Context(), &pods, client.InNamespace(s.namespace)); err != nil {
		s.t.Fatal(err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		_, asks := pod.Spec.Containers[0].Resources.Limits[gpuResource]
		if !asks && pod.Spec.NodeName != "" && pod.Labels[rqv1.LabelRun] == "" && pod.Status.Phase != corev1.PodSucceeded {
			bound++
		}
	}
	return bound
}

// live is what becomes of a workload in a site of four nodes, from when it is made on.
func (w *workload) live(s *site) {
	t := s.t
	s.mayUse(s.owner)
	s.submit("first", 24)
	s.await("first", rqv1.RunRunning, "bound 24 GPUs")
	m := s.makes(*w)
	run := s.groupRun(w.group.API, w.group.Kind, w.group.Name)
	s.await(run, rqv1.RunPending, "short by 8")
	if err := s.holdsNothing(run); err != nil {
		t.Error(err)
	}
	if w.beside > 0 && s.withoutGPUs() > 0 {
		t.Error("pods that ask for no GPUs do not wait with their group")
	}
	s.removeRun("first")
	s.await(run, rqv1.RunRunning, "bound 16 GPUs")
	s.paidBy(run, map[string]int32{string(s.owner) + "/all own Active": 16})
	if leases := len(s.leasesOf(run)); leases != 2 {
		t.Errorf("2 pods have %d Leases", leases)
	}
	eventually(t, "the pods that ask for no GPUs", func() error {
		if bound := s.withoutGPUs(); bound != w.beside {
			return fmt.Errorf("%d of %d are bound", bound, w.beside)
		}
		return nil
	})
	s.tells(nil, "list", "\n"+w.group.String()+" ")
	s.tells(nil, "explain "+w.named, "Run "+s.namespace+"/"+w.group.String()+" is Running")
	m.losesANode(run)
	s.settled()
	switch w.Kind {
	case "RayCluster":
		m.scales(run)
	case "MPIJob":
		m.completes(run)
	case "LeaderWorkerSet":
		m.hasGroups(run)
	}
	s.delete(m.object, client.PropagationPolicy(metav1.DeletePropagationBackground))
	s.awaitGone(run)
}

// losesANode has a workload lose the node of its second rank, and waits for the pod that is made in its place.
func (m *made) losesANode(run string) {
	m.t.Helper()
	before := map[string]corev1.Pod{}
	for _, pod := range m.podsOf(run) {
		before[pod.Labels[rqv1.LabelIndex]] = pod
	}
	m.strike(before["1"].Spec.NodeName)
	eventually(m.t, "the replacement", func() error {
		if err := m.tend(); err != nil {
			return err
		}
		now := m.podsOf(run)
		for _, pod := range now {
			was := before[pod.Labels[rqv1.LabelIndex]]
			if pod.Spec.NodeName == "" || (pod.UID == was.UID) != (pod.Labels[rqv1.LabelIndex] == "0") {
				return fmt.Errorf("pod %s of rank %s is on %q", pod.Name, pod.Labels[rqv1.LabelIndex], pod.Spec.NodeName)
			}
		}
		if len(now) != 2 {
			return fmt.Errorf("there are %d pods", len(now))
		}
		return nil
	})
	// Kwok ends pods by their names, and may end one that is made anew under the name of one that it was to end.
	if got := m.closures(run); got[rqv1.ClosedNodeFailure] != 1 || got[""] != 2 {
		m.t.Errorf("Leases closed as %v, want one as NodeFailure and two that are open", got)
	}
}
