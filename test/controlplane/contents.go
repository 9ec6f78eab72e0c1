package controlplane

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// registry is what the keys of all objects begin with.
	registry = "/registry/"
	// transaction is how many keys etcd lets one transaction write.
	transaction = 128
	// settling is how long nothing may come up any more: controllers still write what they have not heard of yet.
	settling = 100 * time.Millisecond
)

// Contents are the objects of a control plane as its etcd has them. A control plane that has them again is as it was:
// to start one takes longer than many a test, and to have the API list and delete all that a test has left costs as
// much.
type Contents struct{ objects map[string]*mvccpb.KeyValue }

// Contents returns what the control plane holds.
func (c *ControlPlane) Contents(ctx context.Context) (*Contents, error) {
	found := &Contents{map[string]*mvccpb.KeyValue{}}
	err := c.withEtcd(func(etcd *clientv3.Client) error {
		all, err := etcd.Get(ctx, registry, clientv3.WithPrefix())
		if err != nil {
			return err
		}
		for _, object := range all.Kvs {
			found.objects[string(object.Key)] = object
		}
		return nil
	})
	return found, err
}

// RestoreTo deletes what the control plane did not hold before, tells which namespaces go, and puts back what was
// changed or deleted. It is an error if things still come up when the context ends. Nobody but the control plane's own
// controllers may write meanwhile.
func (c *ControlPlane) RestoreTo(ctx context.Context, before *Contents, goes func(namespace string)) error {
	return c.withEtcd(func(etcd *clientv3.Client) error {
		for first := true; ; first = false {
			writes, err := before.differences(ctx, etcd, first, goes)
			if err != nil || len(writes) == 0 && !first {
				return err
			}
			if err := write(ctx, etcd, writes); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%w: still written: %q", ctx.Err(), keysOf(writes))
			case <-time.After(settling):
			}
		}
	})
}

// differences returns what is to be written so that etcd has the contents again. What differs once it has been put back
// is what a controller says of it, and taken as it is.
func (c *Contents) differences(ctx context.Context, etcd *clientv3.Client, first bool, goes func(namespace string),
) ([]clientv3.Op, error) {
	now, err := etcd.Get(ctx, registry, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	var writes []clientv3.Op
	missing := maps.Clone(c.objects)
	for _, object := range now.Kvs {
		key := string(object.Key)
		was := c.objects[key]
		delete(missing, key)
		switch {
		case itsOwn(key):
		case was == nil:
			if namespace, is := strings.CutPrefix(key, registry+"namespaces/"); is {
				goes(namespace)
			}
			writes = append(writes, clientv3.OpDelete(key))
		case was.ModRevision == object.ModRevision:
		case first:
			writes = append(writes, clientv3.OpPut(key, string(was.Value)))
		default:
			was.ModRevision = object.ModRevision
		}
	}
	for _, key := range slices.Sorted(maps.Keys(missing)) {
		if !itsOwn(key) {
			writes = append(writes, clientv3.OpPut(key, string(missing[key].Value)))
		}
	}
	return writes, nil
}

// itsOwn tells whether an object is none that tests change: what the control plane writes for itself.
func itsOwn(key string) bool {
	return strings.HasPrefix(key, registry+"apiregistration.k8s.io/") || strings.HasPrefix(key, registry+"ranges/") ||
		inNamespace(key, metav1.NamespaceSystem)
}

// Forget deletes a namespace in which nothing runs any more, with all that is left in it. It costs one write; the
// namespace controller asks for each kind that is served whether there is one.
func (c *ControlPlane) Forget(ctx context.Context, namespace string) error {
	return c.withEtcd(func(etcd *clientv3.Client) error {
		all, err := etcd.Get(ctx, registry, clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil {
			return err
		}
		writes := []clientv3.Op{clientv3.OpDelete(registry + "namespaces/" + namespace)}
		for _, object := range all.Kvs {
			if key := string(object.Key); inNamespace(key, namespace) {
				writes = append(writes, clientv3.OpDelete(key))
			}
		}
		return write(ctx, etcd, writes)
	})
}

// inNamespace tells whether a key is that of an object in a namespace: /registry/RESOURCE/NAMESPACE/NAME, with a group
// before the resource if it is defined by a CustomResourceDefinition.
func inNamespace(key, namespace string) bool {
	parts := strings.Split(strings.TrimPrefix(key, registry), "/")
	if strings.Contains(parts[0], ".") {
		parts = parts[1:]
	}
	return len(parts) >= 3 && parts[len(parts)-2] == namespace
}

// keysOf are the keys that some operations write.
func keysOf(writes []clientv3.Op) []string {
	keys := make([]string, len(writes))
	for i, w := range writes {
		keys[i] = string(w.KeyBytes())
	}
	return keys
}

func write(ctx context.Context, etcd *clientv3.Client, writes []clientv3.Op) error {
	for some := range slices.Chunk(writes, transaction) {
		if _, err := etcd.Txn(ctx).Then(some...).Commit(); err != nil {
			return err
		}
	}
	return nil
}

// withEtcd does something with a client of the control plane's etcd.
func (c *ControlPlane) withEtcd(do func(*clientv3.Client) error) error {
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{c.etcdAddress}})
	if err != nil {
		return err
	}
	defer func() { _ = etcd.Close() }()
	return do(etcd)
}
