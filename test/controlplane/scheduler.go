package controlplane

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// The scheduler's own names in manifests/rbac and manifests/scheduler.
const (
	// Namespace is where the scheduler is installed.
	Namespace = "jobtree-system"
	// SchedulerAccount is the service account that the scheduler runs under.
	SchedulerAccount = "jobtree-scheduler"
	// SchedulerLease is the coordination Lease by which schedulers elect their leader.
	SchedulerLease = "jobtree-scheduler"
)

// startScheduler starts the scheduler that Options ask for.
func (c *ControlPlane) startScheduler(ctx context.Context) error {
	if !c.options.Scheduler {
		return nil
	}
	return c.StartLeader(ctx)
}

// StartLeader starts the scheduler that Scheduler is from then on, and waits until it leads, or until another one does.
// One that takes part in no election leads once it is ready.
func (c *ControlPlane) StartLeader(ctx context.Context) (err error) {
	started := time.Now().Truncate(time.Second)
	if c.Scheduler, err = c.StartScheduler(ctx, "jobtree-scheduler"); err != nil {
		return err
	}
	config, err := readConfig(c.options.Config)
	if err != nil {
		return err
	}
	if !elects(config) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return c.Scheduler.WaitUntil(ctx, func(ctx context.Context) error {
		lease, err := c.client.CoordinationV1().Leases(Namespace).Get(ctx, SchedulerLease, metav1.GetOptions{})
		if err != nil {
			return err
		}
		// A dead leader renews nothing.
		if lease.Spec.RenewTime == nil || lease.Spec.RenewTime.Time.Before(started) {
			return fmt.Errorf("no scheduler leads")
		}
		return nil
	})
}

// StartScheduler starts a jobtree scheduler of that name, which must be unique among those of this control plane, with
// the configuration of Options and the further command-line flags, and returns when it is ready: its caches are filled,
// whether it leads or not.
func (c *ControlPlane) StartScheduler(ctx context.Context, name string, flags ...string) (*Process, error) {
	p, err := c.scheduler(ctx, name, flags)
	if err != nil {
		return nil, err
	}
	if err := p.Start(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return p, p.WaitUntil(ctx, p.healthy)
}

// Configure has schedulers that are started from now on read the KubeSchedulerConfiguration of that path.
func (c *ControlPlane) Configure(path string) { c.options.Config = path }

// KillSchedulers kills all schedulers of this control plane, if any. Where GOCOVERDIR is set they may write first what
// they have covered.
func (c *ControlPlane) KillSchedulers() error {
	others := c.others()
	if os.Getenv("GOCOVERDIR") != "" {
		terminate(c.options.Dir, 5*time.Second, others...)
	}
	_, err := killAll(c.options.Dir, others...)
	return err
}

// others are the names of the processes that are no schedulers.
func (c *ControlPlane) others() (names []string) {
	for _, p := range []*Process{c.Etcd, c.APIServer, c.ControllerManager, c.Kwok, c.JobSet, c.LWS} {
		if p != nil {
			names = append(names, p.Name)
		}
	}
	return names
}

func (c *ControlPlane) scheduler(ctx context.Context, name string, flags []string) (*Process, error) {
	kubeconfig, err := c.KubeconfigForServiceAccount(ctx, Namespace, SchedulerAccount)
	if err != nil {
		return nil, err
	}
	config := filepath.Join(c.options.Dir, name+".yaml")
	if err := writeSchedulerConfig(c.options.Config, config, kubeconfig); err != nil {
		return nil, err
	}
	address, err := c.ports.address(name)
	if err != nil {
		return nil, err
	}
	p, err := c.process(name, "jobtree-scheduler", append([]string{
		"--config=" + config,
		"--feature-gates=NominatedNodeNameForExpectation=false",
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		"--secure-port=" + portOf(address),
	}, flags...)...)
	if err != nil {
		return nil, err
	}
	p.Address = address
	if other := os.Getenv(schedulerVariable); other != "" {
		p.path = other
	}
	return p, nil
}

// schedulerVariable is the environment variable that may name another scheduler than the one of Options.BinDir, such as
// one that looks for data races.
const schedulerVariable = "JOBTREE_SCHEDULER"

// writeSchedulerConfig copies a KubeSchedulerConfiguration and points it at this control plane; the rest is as in from.
func writeSchedulerConfig(from, to, kubeconfig string) error {
	config, err := readConfig(from)
	if err != nil {
		return err
	}
	connection, ok := config["clientConnection"].(map[string]any)
	if !ok {
		connection = map[string]any{}
	}
	connection["kubeconfig"] = kubeconfig
	config["clientConnection"] = connection
	data, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	return replaceFile(to, data, 0o600)
}

// elects reports whether schedulers of a configuration elect who leads; they do unless it says otherwise.
func elects(config map[string]any) bool {
	elects, said, _ := unstructured.NestedBool(config, "leaderElection", "leaderElect")
	return elects || !said
}

// readConfig reads a KubeSchedulerConfiguration.
func readConfig(path string) (config map[string]any, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(data, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return config, nil
}

// healthy asks the process's own /readyz, whose certificate is self-signed.
func (p *Process) healthy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+p.Address+"/readyz", nil)
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", request.URL, response.Status)
	}
	return nil
}
