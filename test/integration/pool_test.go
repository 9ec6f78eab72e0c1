package integration

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/davidlangworthy/jobtree/test/controlplane"
)

// pool holds clusters of tests that have passed, as they were when they were new. To start one takes longer than many
// a test.
var pool struct {
	sync.Mutex
	// idle are those that no test uses, with the controller of JobSets and without.
	idle map[bool][]*cluster
	// all are those that were ever started, to be stopped in the end.
	all []*cluster
}

// own has a place for each test that may have a cluster of its own at a time, since each takes half a gigabyte, and
// ofMany for each whose subtests share one: while these wait for their turn the cluster is taken, and those whose turn
// it is must not wait for its place.
var own, ofMany = make(chan struct{}, 5), make(chan struct{}, 2)

// pooled returns a cluster without a scheduler, and with the controller of JobSets or without, an idle one if there is
// one.
func pooled(jobSets bool) (*cluster, error) {
	pool.Lock()
	if idle := pool.idle[jobSets]; len(idle) > 0 {
		c := idle[len(idle)-1]
		pool.idle[jobSets] = idle[:len(idle)-1]
		pool.Unlock()
		return c, c.furnish()
	}
	pool.Unlock()
	dir, err := os.MkdirTemp("", "jobtree-own-")
	if err != nil {
		return nil, err
	}
	c, err := openCluster(controlplane.Options{Dir: dir, Kwok: true, JobSet: jobSets})
	if err != nil {
		return nil, err
	}
	if c.asNew, err = c.objects(context.Background()); err != nil {
		return nil, err
	}
	pool.Lock()
	pool.all = append(pool.all, c)
	pool.Unlock()
	return c, c.furnish()
}

// release gives a cluster back when its test has ended. One whose test has failed, or that cannot be made as it was, is
// stopped.
func (c *cluster) release(t *testing.T) {
	if err := c.KillSchedulers(); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		c.Stop()
		return
	}
	if err := within(time.Minute, func() error { return c.wipe(context.Background()) }); err != nil {
		t.Logf("another test cannot use this one's cluster: %v", err)
		c.Stop()
		return
	}
	pool.Lock()
	defer pool.Unlock()
	if pool.idle == nil {
		pool.idle = map[bool][]*cluster{}
	}
	pool.idle[c.JobSet != nil] = append(pool.idle[c.JobSet != nil], c)
}

// stopPool ends all of them.
func stopPool() {
	for _, c := range pool.all {
		c.Stop()
		_ = os.RemoveAll(c.dir)
	}
}

// asScheduler is a client with all rights, under the one name that may delete the record of what was spent.
func (c *cluster) asScheduler() (client.Client, error) {
	config := c.AdminConfig()
	config.Impersonate.UserName = "system:serviceaccount:" + controlplane.Namespace + ":" + controlplane.SchedulerAccount
	config.Impersonate.Groups = []string{"system:masters"}
	return client.New(config, client.Options{Scheme: c.api.Scheme(), Mapper: c.api.RESTMapper()})
}

// wipe deletes what a new cluster does not have. It is an error if something is left, or not as it was.
func (c *cluster) wipe(ctx context.Context) error {
	scheduler, err := c.asScheduler()
	if err != nil {
		return err
	}
	now, err := c.objects(ctx)
	if err != nil {
		return err
	}
	var differ []string
	for _, key := range slices.SortedFunc(maps.Keys(now), object.compare) {
		if _, installed := c.asNew[key]; installed {
			continue
		}
		differ = append(differ, key.String())
		if key.kind.Kind == "Namespace" {
			if err := c.empty(ctx, key.name); err != nil {
				return err
			}
			c.ledger.forget(key.name)
		}
		if err := scheduler.Delete(ctx, key.metadata()); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	for key, version := range c.asNew {
		if now[key] != version {
			differ = append(differ, key.String())
		}
	}
	if len(differ) > 0 {
		return fmt.Errorf("other than when it was new: %s", strings.Join(differ, ", "))
	}
	c.ledger.mutex.Lock()
	defer c.ledger.mutex.Unlock()
	if len(c.ledger.wrong) > 0 {
		return fmt.Errorf("%v", c.ledger.wrong)
	}
	return nil
}

// empty ends the pods of a namespace, whose nodes may be gone.
func (c *cluster) empty(ctx context.Context, namespace string) error {
	return c.api.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace), client.GracePeriodSeconds(0))
}

// object is one of the API's.
type object struct {
	kind            schema.GroupVersionKind
	namespace, name string
}

func (o object) String() string {
	return o.kind.Kind + " " + strings.TrimPrefix(o.namespace+"/"+o.name, "/")
}

func (o object) compare(p object) int { return strings.Compare(o.String(), p.String()) }

func (o object) metadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: o.name}}
	m.SetGroupVersionKind(o.kind)
	return m
}

// volatile are the groups and kinds that change by themselves, or say what others do.
var volatile = []string{"apiregistration.k8s.io", "events.k8s.io", "discovery.k8s.io", "Event",
	"ComponentStatus"}

// objects returns the versions of all objects that are in no namespace or in the scheduler's.
func (c *cluster) objects(ctx context.Context) (map[object]string, error) {
	served, err := discovery.ServerPreferredResources(c.kube.Discovery())
	if err != nil {
		return nil, err
	}
	found := map[object]string{}
	for _, list := range served {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			if !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "delete") ||
				slices.Contains(volatile, version.Group) || slices.Contains(volatile, r.Kind) {
				continue
			}
			if err := c.objectsOf(ctx, version.WithKind(r.Kind), r.Namespaced, found); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

func (c *cluster) objectsOf(ctx context.Context, kind schema.GroupVersionKind, namespaced bool,
	into map[object]string) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	var in []client.ListOption
	if namespaced {
		in = append(in, client.InNamespace(controlplane.Namespace))
	}
	if err := c.api.List(ctx, list, in...); err != nil {
		return fmt.Errorf("listing %v: %w", kind, err)
	}
	for i := range list.Items {
		o := &list.Items[i]
		version := fmt.Sprint(o.Generation) // what its status says may change
		if o.Generation == 0 {
			version = o.ResourceVersion
		}
		into[object{kind, o.Namespace, o.Name}] = string(o.UID) + " " + version
	}
	return nil
}
