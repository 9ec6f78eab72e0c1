package controlplane

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// startFleet loads the fleet of Options, if there is one.
func (c *ControlPlane) startFleet(ctx context.Context) error {
	if c.options.Fleet == "" {
		return nil
	}
	return c.StartFleet(ctx, c.options.Fleet)
}

// StartFleet loads the fleet of a file and, with kwok, waits until its nodes are Ready.
func (c *ControlPlane) StartFleet(ctx context.Context, path string) error {
	nodes, err := ReadFleet(path)
	if err != nil {
		return err
	}
	created, err := c.CreateNodes(ctx, nodes)
	if err != nil || c.Kwok == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return c.WaitNodesReady(ctx, created)
}

// ReadFleet reads a YAML or JSON file of Nodes and Lists of Nodes. Anything else in it, and an unknown or duplicate
// field, is an error that says which document.
func ReadFleet(path string) ([]corev1.Node, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	reader := utilyaml.NewYAMLReader(bufio.NewReader(file))
	var nodes []corev1.Node
	for i := 1; ; i++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nodes, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		found, err := readNodes(document)
		if err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", path, i, err)
		}
		nodes = append(nodes, found...)
	}
}

// readNodes reads one document: a Node, a List of Nodes, or nothing but comments.
func readNodes(document []byte) ([]corev1.Node, error) {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return nil, err
	}
	switch {
	case kind == metav1.TypeMeta{}:
		return nil, nil
	case kind.APIVersion == "v1" && kind.Kind == "Node":
		nodes := make([]corev1.Node, 1)
		return nodes, yaml.UnmarshalStrict(document, &nodes[0])
	case kind.APIVersion == "v1" && (kind.Kind == "List" || kind.Kind == "NodeList"):
		var list corev1.NodeList
		if err := yaml.UnmarshalStrict(document, &list); err != nil {
			return nil, err
		}
		for _, node := range list.Items {
			if node.Kind != "Node" {
				return nil, fmt.Errorf("%s %s is not a Node", node.Kind, node.Name)
			}
		}
		return list.Items, nil
	}
	return nil, fmt.Errorf("%s %s is not a Node", kind.APIVersion, kind.Kind)
}

// CreateNodes creates Nodes with the status that they come with, and returns those that it created: one that exists
// already is left as it is.
func (c *ControlPlane) CreateNodes(ctx context.Context, nodes []corev1.Node) ([]corev1.Node, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	exists := make([]bool, len(nodes))
	for i := range nodes {
		group.Go(func() error {
			_, err := c.client.CoreV1().Nodes().Create(ctx, &nodes[i], metav1.CreateOptions{})
			exists[i] = apierrors.IsAlreadyExists(err)
			if exists[i] {
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var created []corev1.Node
	for i := range nodes {
		if !exists[i] {
			created = append(created, nodes[i])
		}
	}
	return created, nil
}

// WaitNodesReady waits until those of the nodes that kwok plays are Ready and free of the taints of a node that is not.
func (c *ControlPlane) WaitNodesReady(ctx context.Context, nodes []corev1.Node) error {
	wanted := map[string]bool{}
	for _, node := range nodes {
		if node.Annotations[kwokAnnotation] == "fake" {
			wanted[node.Name] = true
		}
	}
	return c.Kwok.WaitUntil(ctx, func(ctx context.Context) error {
		list, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return err
		}
		missing := len(wanted)
		for _, node := range list.Items {
			if wanted[node.Name] && ready(&node) {
				missing--
			}
		}
		if missing > 0 {
			return fmt.Errorf("%d of %d nodes are not Ready", missing, len(wanted))
		}
		return nil
	})
}

func ready(node *corev1.Node) bool {
	tainted := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable
	})
	return !tainted && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
