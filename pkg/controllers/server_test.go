package controllers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	kubefake "k8s.io/client-go/kubernetes/fake"
	core "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/fence"
)

// What an API server may answer.
var (
	conflict  = apierrors.NewConflict(schema.GroupResource{}, "it", errors.New("written since"))
	notFound  = apierrors.NewNotFound(schema.GroupResource{}, "it")
	there     = apierrors.NewAlreadyExists(schema.GroupResource{}, "it")
	forbidden = apierrors.NewForbidden(schema.GroupResource{}, "it", errors.New("quota exceeded"))
	broken500 = apierrors.NewInternalError(errors.New("etcd is away"))
	fenced    = fence.ErrNotLeading
	outrun    = apierrors.NewForbidden(schema.GroupResource{}, "it",
		errors.New("ValidatingAdmissionPolicy '"+fence.Policy+"' denied request: this process does not lead"))
)

// fault is how the API server answers some requests.
type fault struct {
	on     string // what such requests begin with, as server tells them
	err    error
	stored bool // it has done what was asked, and the answer is an error all the same
	once   bool
	// until holds the answer back until it is closed, and then it is what was asked for. Each that is held is told to
	// held.
	until <-chan struct{}
	held  chan<- string
}

// server is an API server of the built-in kinds and of ours. It notes what is written, in order, and checks UIDs that
// deletions and patches name, as a fake does not.
type server struct {
	kube  *kubefake.Clientset
	kinds client.WithWatch

	mu     sync.Mutex
	faults []fault
	wrote  []string
	heard  chan<- string // is told what is written; nil for nobody
}

// newServer has objects of the built-in kinds, and of ours, who are client.Objects.
func newServer(t *testing.T, objects ...runtime.Object) *server {
	t.Helper()
	var builtIn []runtime.Object
	var own []client.Object
	for _, o := range objects {
		switch o := o.(type) {
		case *rqv1.Run, *rqv1.Lease, *rqv1.Reservation, *rqv1.Budget:
			own = append(own, o.(client.Object))
		default:
			builtIn = append(builtIn, o)
		}
	}
	s := &server{kube: kubefake.NewClientset(builtIn...)}
	s.kube.PrependReactor("*", "*", s.react)
	s.kinds = interceptor.NewClient(ours(t, own...), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if len((&client.CreateOptions{}).ApplyOptions(options).DryRun) > 0 {
				return s.said("create "+kindOf(o)+" "+o.GetName(), func() error { return c.Create(ctx, o, options...) })
			}
			return s.answer("create", o, func() error {
				if o.GetUID() == "" {
					o.SetUID(uuid.NewUUID())
				}
				return c.Create(ctx, o, options...)
			})
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			return s.answer("update", o, func() error { return c.Update(ctx, o, options...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch,
			options ...client.PatchOption) error {
			return s.answer("patch", o, func() error { return c.Patch(ctx, o, patch, options...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object,
			options ...client.SubResourceUpdateOption) error {
			return s.answer("update "+sub, o, func() error { return c.SubResource(sub).Update(ctx, o, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return s.answer("delete", o, func() error {
				stored, how := o.DeepCopyObject().(client.Object), (&client.DeleteOptions{}).ApplyOptions(options)
				if err := c.Get(ctx, client.ObjectKeyFromObject(o), stored); err != nil {
					return err
				}
				if how.Preconditions != nil && how.Preconditions.UID != nil && *how.Preconditions.UID != stored.GetUID() {
					return conflict
				}
				is := stored.GetResourceVersion()
				if p := how.Preconditions; p != nil && p.ResourceVersion != nil && *p.ResourceVersion != is {
					return conflict
				}
				return c.Delete(ctx, o)
			})
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			options ...client.GetOption) error {
			return s.said("get "+kindOf(o)+" "+key.Name, func() error { return c.Get(ctx, key, o, options...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			return s.said("list "+kindOf(list), func() error { return c.List(ctx, list, options...) })
		},
	})
	return s
}

// kindOf names a kind as requests do.
func kindOf(o runtime.Object) string {
	switch o.(type) {
	case *rqv1.Run, *rqv1.RunList:
		return "runs"
	case *rqv1.Lease, *rqv1.LeaseList:
		return "leases"
	case *rqv1.Reservation, *rqv1.ReservationList:
		return "reservations"
	case *rqv1.Budget, *rqv1.BudgetList:
		return "budgets"
	}
	return "others"
}

// answer is what becomes of a write of one of our kinds.
func (s *server) answer(verb string, o client.Object, do func() error) error {
	what := verb + " " + kindOf(o) + " " + o.GetName()
	return s.said(what, func() error {
		err := do()
		if err == nil {
			s.note(what)
		}
		return err
	})
}

// said does what is asked for, unless a fault is to be the answer.
func (s *server) said(what string, do func() error) error {
	f := s.faultOf(what)
	if f == nil {
		return do()
	}
	if f.until != nil {
		f.held <- what
		<-f.until
		return do()
	}
	if f.stored {
		if err := do(); err != nil {
			return err
		}
	}
	return f.err
}

func (s *server) faultOf(what string) *fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range s.faults {
		if strings.HasPrefix(what, f.on) {
			if f.once {
				s.faults = slices.Delete(s.faults, i, i+1)
			}
			return &f
		}
	}
	return nil
}

func (s *server) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrote = append(s.wrote, what)
	if s.heard != nil {
		s.heard <- what
	}
}

// react answers requests for the built-in kinds.
func (s *server) react(action core.Action) (bool, runtime.Object, error) {
	what := action.GetVerb()
	if sub := action.GetSubresource(); sub != "" {
		what += " " + sub
	}
	what += " " + action.GetResource().Resource
	if named, ok := action.(interface{ GetName() string }); ok && named.GetName() != "" {
		what += " " + named.GetName()
	} else if writes, ok := action.(core.CreateAction); ok {
		what += " " + writes.GetObject().(metav1.Object).GetName()
	}
	var out runtime.Object
	err := s.said(what, func() (err error) {
		if uid := uidOf(action); uid != "" {
			named := action.(interface{ GetName() string }).GetName()
			stored, err := s.kube.Tracker().Get(action.GetResource(), action.GetNamespace(), named)
			if err == nil && stored.(metav1.Object).GetUID() != uid {
				return conflict
			}
		}
		_, out, err = core.ObjectReaction(s.kube.Tracker())(action)
		if err == nil && !slices.Contains([]string{"get", "list", "watch"}, action.GetVerb()) {
			s.note(what)
		}
		return err
	})
	return true, out, err
}

// uidOf is the UID that an object is to have for something to be done to it; empty for any.
func uidOf(action core.Action) types.UID {
	switch action := action.(type) {
	case core.DeleteActionImpl:
		if p := action.DeleteOptions.Preconditions; p != nil && p.UID != nil {
			return *p.UID
		}
	case core.PatchActionImpl:
		change := struct{ Metadata struct{ UID types.UID } }{}
		if json.Unmarshal(action.GetPatch(), &change) == nil {
			return change.Metadata.UID
		}
	}
	return ""
}

// written is what has been written since the last call. Writes of one kind that follow on each other are sorted: they
// are made at the same time.
func (s *server) written() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.wrote
	s.wrote = nil
	verb := func(what string) string { return what[:strings.LastIndex(what, " ")] }
	for from := 0; from < len(out); {
		to := from
		for to < len(out) && verb(out[to]) == verb(out[from]) {
			to++
		}
		slices.SortFunc(out[from:to], func(x, y string) int { return cmp.Compare(x, y) })
		from = to
	}
	return out
}

// node is a node of eight GPUs that carries all labels.
func nodeOf8(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{
		"region": "r", "cluster": "c", "fabric.domain": "d", "gpu.flavor": "H100"}},
		Status: corev1.NodeStatus{Allocatable: gpus("8"), Capacity: gpus("8")}}
}
