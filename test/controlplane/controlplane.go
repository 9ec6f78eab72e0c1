package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Options says what to start and where.
type Options struct {
	// Dir is the state directory; it is made if missing. Required.
	Dir string
	// BinDir holds the binaries. Default: the directory that JOBTREE_BIN names, otherwise bin of the checkout that the
	// working directory is in.
	BinDir string
	// Fleet is the path of a YAML file of Nodes. Default: no nodes.
	Fleet string
	// Config is the path of the KubeSchedulerConfiguration of the jobtree scheduler. Default: the one in manifests.
	Config string
	// Scheduler starts jobtree-scheduler, of BinDir or what JOBTREE_SCHEDULER in the environment names. Default: off.
	Scheduler bool
	// Kwok starts kwok, which plays the kubelet of every Node annotated kwok.x-k8s.io/node: fake. Default: off.
	Kwok bool
	// JobSet starts the controller of JobSets, and installs their kind and its webhooks. Default: off.
	JobSet bool
	// LWS does so for that of LeaderWorkerSets. Default: off.
	LWS bool
	// PodGroups has the API server serve the native PodGroup, and installs the kind of the coscheduling plugin.
	// Default: off.
	PodGroups bool
	// Audit has the API server log what the scheduler's service account writes, in AuditLog. Default: off.
	Audit bool
	// Detached lets the processes outlive this one. Default: they are killed when this process ends, however it ends.
	Detached bool
}

// ControlPlane is a running control plane.
type ControlPlane struct {
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string
	// Etcd, APIServer, ControllerManager, Kwok, JobSet and LWS are the processes; each can be signalled, killed and
	// restarted. The last three are nil unless asked for.
	Etcd, APIServer, ControllerManager, Kwok, JobSet, LWS *Process
	// Scheduler is the process that Options.Scheduler asks for; nil without it.
	Scheduler *Process

	options Options
	root    string
	ports   *ports
	pki     *authority
	// etcdAddress and address (of the API server) are host:port.
	etcdAddress, address string
	admin                *rest.Config
	client               kubernetes.Interface
}

// Start starts a control plane, or what is missing of the one in o.Dir, and returns when it is ready: the API server
// answers, the CustomResourceDefinitions are served, the default service account exists, the fleet's nodes are Ready,
// and the scheduler leads. The error of a process that does not come up holds the end of its log. On error nothing that
// this call started keeps running, unless o.Detached.
func Start(ctx context.Context, o Options) (*ControlPlane, error) {
	c, err := open(o)
	if err != nil {
		return nil, err
	}
	unlock, err := lock(c.options.Dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	for _, step := range []func(context.Context) error{
		c.startServers, c.installOperators, c.installPodGroups, c.install, c.startControllers, c.startOperators, c.startFleet,
		c.startScheduler,
	} {
		if err := step(ctx); err != nil {
			if !o.Detached {
				c.Stop()
			}
			return nil, err
		}
	}
	return c, nil
}

// open reads or makes the state directory: ports, certificates, kubeconfigs.
func open(o Options) (*ControlPlane, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	if o.Dir == "" {
		return nil, fmt.Errorf("controlplane: Options.Dir is required")
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, err
	}
	if o.BinDir == "" {
		o.BinDir = BinDir(root)
	}
	if o.Config == "" {
		o.Config = filepath.Join(root, "manifests", "scheduler", "config.yaml")
	}
	if err := os.MkdirAll(filepath.Join(o.Dir, "logs"), 0o755); err != nil {
		return nil, err
	}
	c := &ControlPlane{options: o, root: root, Kubeconfig: filepath.Join(o.Dir, "kubeconfig")}
	if c.ports, err = loadPorts(filepath.Join(o.Dir, "ports.json")); err != nil {
		return nil, err
	}
	for name, address := range map[string]*string{"etcd": &c.etcdAddress, "kube-apiserver": &c.address} {
		if *address, err = c.ports.address(name); err != nil {
			return nil, err
		}
	}
	if c.pki, err = loadAuthority(filepath.Join(o.Dir, "pki")); err != nil {
		return nil, err
	}
	if err := c.writeAdminKubeconfig(); err != nil {
		return nil, err
	}
	c.client, err = kubernetes.NewForConfig(c.AdminConfig())
	return c, err
}

// AdminConfig is a client configuration with all rights and no client-side rate limit.
func (c *ControlPlane) AdminConfig() *rest.Config { return rest.CopyConfig(c.admin) }

// Stop kills every process of the control plane and leaves the state directory in place. Calling it again is harmless.
func (c *ControlPlane) Stop() {
	// Nothing else here is worth a graceful end: the state is thrown away or, after a crash, taken over.
	_ = c.KillSchedulers()
	_, _ = killAll(c.options.Dir)
}
