package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// operator is a controller of kinds that are no part of Kubernetes. Its module has their definitions and those of its
// webhooks, which are beside its program.
type operator struct {
	// name is the program's, and dir where the definitions are.
	name, dir string
	// config is the version of its configuration.
	config string
	// label marks the pods that its webhooks are asked about.
	label string
}

var (
	jobSets = operator{"jobset-controller", "jobset", "config.jobset.x-k8s.io/v1alpha1", "jobset.sigs.k8s.io/jobset-name"}
	lws     = operator{"lws-controller", "lws", "config.lws.x-k8s.io/v1alpha1", "leaderworkerset.sigs.k8s.io/name"}
)

// asked is an operator that is asked for, and its process.
type asked struct {
	*operator
	process **Process
}

func (c *ControlPlane) operators() (out []asked) {
	if c.options.JobSet {
		out = append(out, asked{&jobSets, &c.JobSet})
	}
	if c.options.LWS {
		out = append(out, asked{&lws, &c.LWS})
	}
	return out
}

// startOperators starts those that are asked for.
func (c *ControlPlane) startOperators(ctx context.Context) error {
	for _, o := range c.operators() {
		if err := c.startOperator(ctx, o.operator, *o.process); err != nil {
			return err
		}
	}
	return nil
}

// StartJobSet starts the controller of JobSets, again after a Kill or Stop, and waits until its webhooks answer. A
// running one is left alone.
func (c *ControlPlane) StartJobSet(ctx context.Context) error {
	return c.startOperator(ctx, &jobSets, c.JobSet)
}

func (c *ControlPlane) startOperator(ctx context.Context, o *operator, process *Process) error {
	if err := process.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	// The webhook for pods is the last thing that such a controller sets up. It may refuse this one: that is an answer.
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "nobody", Labels: map[string]string{o.label: "nobody"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}
	return process.WaitUntil(ctx, func(ctx context.Context) error {
		_, err := c.client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
			return nil
		}
		return err
	})
}

// describe describes an operator, which runs with all rights. There are no Services here, so that the API server calls
// its webhooks by URL and it is handed their certificate.
func (c *ControlPlane) describe(o *operator) (*Process, error) {
	kubeconfig, err := c.KubeconfigForUser(o.name, "system:masters")
	if err != nil {
		return nil, err
	}
	address, err := c.ports.address(o.name)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(portOf(address))
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(c.options.Dir, o.name)
	if err := c.writeServerPair(dir, o.name); err != nil {
		return nil, err
	}
	config, err := yaml.Marshal(map[string]any{
		"apiVersion": o.config, "kind": "Configuration",
		"internalCertManagement": map[string]any{"enable": false},
		"webhook":                map[string]any{"host": "127.0.0.1", "port": port, "certDir": dir},
		"leaderElection":         map[string]any{"leaderElect": false}, // it must take over at once after a crash
		"metrics":                map[string]any{"bindAddress": "0"},
		"health":                 map[string]any{"healthProbeBindAddress": "0"},
	})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "config.yaml")
	if err := replaceFile(file, config, 0o644); err != nil {
		return nil, err
	}
	p, err := c.process(o.name, o.name, "--kubeconfig="+kubeconfig, "--config="+file, "--zap-devel=false")
	if err == nil {
		p.Address = address
	}
	return p, err
}

// writeServerPair writes a server's certificate and key into a directory of its own, unless they are there.
func (c *ControlPlane) writeServerPair(dir, name string) error {
	cert := filepath.Join(dir, "tls.crt")
	if _, err := os.Stat(cert); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	pair, err := c.pki.serverPair(name)
	if err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(dir, "tls.key"), pair.key, 0o600); err != nil {
		return err
	}
	return replaceFile(cert, pair.cert, 0o600)
}

// installOperators installs the kinds whose controllers are asked for, and has the API server ask these, as their
// modules say. They are not waited for: install waits for all kinds. A garbage collector that runs already would learn
// of a kind only after half a minute.
func (c *ControlPlane) installOperators(ctx context.Context) error {
	for _, o := range c.operators() {
		p, err := c.describe(o.operator)
		if err != nil {
			return err
		}
		*o.process = p
		if err := c.installOperator(ctx, o.operator, p); err != nil {
			return err
		}
	}
	return nil
}

func (c *ControlPlane) installOperator(ctx context.Context, o *operator, process *Process) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	from := filepath.Join(c.options.BinDir, o.dir)
	webhooks, stderr, err := c.Kubectl(ctx, "kustomize", filepath.Join(from, "webhook"))
	if err != nil {
		return fmt.Errorf("kubectl kustomize: %w: %s", err, stderr)
	}
	registered, err := c.registered(o.name, []byte(webhooks), process.Address)
	if err != nil {
		return err
	}
	for _, step := range []struct {
		stdin []byte
		args  []string
	}{
		{args: []string{"apply", "--server-side", "--force-conflicts", "-f", filepath.Join(from, "crd", "bases")}},
		{stdin: registered, args: []string{"apply", "--server-side", "--force-conflicts", "-f", "-"}},
	} {
		if _, stderr, err := c.KubectlStdin(ctx, bytes.NewReader(step.stdin), step.args...); err != nil {
			return fmt.Errorf("kubectl %s: %w: %s", step.args[0], err, stderr)
		}
	}
	return nil
}

// registered returns those of some YAML documents that register webhooks, with the address of their server in place of
// its Service.
func (c *ControlPlane) registered(name string, documents []byte, address string) ([]byte, error) {
	var out []byte
	for document := range bytes.SplitSeq(documents, []byte("\n---\n")) {
		var object map[string]any
		if err := yaml.Unmarshal(document, &object); err != nil {
			return nil, err
		}
		webhooks, _ := object["webhooks"].([]any)
		if len(webhooks) == 0 {
			continue
		}
		object["metadata"] = map[string]any{"name": name}
		for _, webhook := range webhooks {
			webhook := webhook.(map[string]any)
			service := webhook["clientConfig"].(map[string]any)["service"].(map[string]any)
			webhook["clientConfig"] = map[string]any{
				"url":      fmt.Sprintf("https://%s%s", address, service["path"]),
				"caBundle": c.pki.pair.cert,
			}
		}
		data, err := yaml.Marshal(object)
		if err != nil {
			return nil, err
		}
		out = append(append(out, "---\n"...), data...)
	}
	return out, nil
}
