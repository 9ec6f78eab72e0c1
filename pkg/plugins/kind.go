package plugins

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// kind is pods of a gang that are alike for plugins: they look at the first of them.
type kind struct {
	pod    *corev1.Pod
	state  fwk.CycleState
	nodes  *fwk.PreFilterResult
	before *fwk.Status      // what PreFilter said
	by     sets.Set[string] // the plugins that left only some nodes
	rule   string           // the plugin that has turned the last node down
	around bool             // all nodes have been looked at that turn it down for what others have bound
	// counted is what PreFilter has found of pods that are to be spread over nodes, and since who has been accepted
	// after it, by where; nil for others.
	counted fwk.CycleState
	since   map[domain][]accepted
}

// turnsDown says why a node turns a pod of the kind down; empty when it does not. It returns false where a plugin
// failed.
func (k *kind) turnsDown(ctx context.Context, plugins framework.Framework, info fwk.NodeInfo) (why string, sure bool) {
	k.rule = ""
	switch {
	case k.before.IsRejected():
		return k.before.Message(), true
	case !k.before.IsSuccess():
		return "", false
	case !k.nodes.AllNodes() && !k.nodes.NodeNames.Has(info.Node().Name):
		return fmt.Sprintf("node(s) didn't satisfy plugin(s) [%s]", strings.Join(sets.List(k.by), " ")), true
	}
	status := plugins.RunFilterPlugins(ctx, k.state, k.pod, info)
	if status.IsSuccess() {
		return "", true
	}
	k.rule = status.Plugin()
	return status.Message(), status.IsRejected()
}

// askingMark marks the state of a cycle in which the other plugins alone are asked.
type askingMark struct{}

// Clone returns the mark.
func (m askingMark) Clone() fwk.StateData { return m }

const askingKey fwk.StateKey = Name + "/asking"

func asking(state fwk.CycleState) bool {
	if state == nil {
		return false
	}
	_, err := state.Read(askingKey)
	return err == nil
}
