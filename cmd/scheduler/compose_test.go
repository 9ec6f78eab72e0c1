package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/davidlangworthy/jobtree/pkg/plugins"
)

// TestProfilesShareOneBook makes a scheduler with two profiles, and has each of their plugins say how full a node is
// that one book knows of.
func TestProfilesShareOneBook(t *testing.T) {
	c := &config.Config{KubeConfig: &rest.Config{Host: "http://127.0.0.1:1"}, Client: fake.NewClientset()}
	c.InformerFactory = scheduler.NewInformerFactory(c.Client, 0, nil)
	c.EventBroadcaster = events.NewEventBroadcasterAdapterWithContext(t.Context(), c.Client)
	c.ComponentConfig = *withProfiles(t, jobtreeProfile("jobtree"), jobtreeProfile("also"))
	args, err := argsOf(c.ComponentConfig.Profiles)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := compose(c, args, func() bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	var made []fwk.ScorePlugin
	factory := func(ctx context.Context, raw runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		pl, err := parts.plugin(ctx, raw, handle)
		if err == nil {
			made = append(made, pl.(fwk.ScorePlugin))
		}
		return pl, err
	}
	if _, err := newScheduler(t.Context(), options.NewOptions(), c,
		frameworkruntime.Registry{plugins.Name: factory}); err != nil {
		t.Fatal(err)
	}
	four := corev1.ResourceList{corev1.ResourceName(args.GPUResource[0]): resource.MustParse("4")}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{args.FlavorLabel: "H100"}},
		Status: corev1.NodeStatus{Allocatable: four}}
	for _, level := range args.TopologyLevels {
		node.Labels[level] = "x"
	}
	parts.book.SetNode(node)
	parts.book.SetPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"},
		Spec: corev1.PodSpec{NodeName: "n",
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: four}}}}})
	if len(made) != 2 {
		t.Fatalf("%d plugins are made for two profiles", len(made))
	}
	info := framework.NewNodeInfo()
	info.SetNode(node)
	for i, pl := range made {
		if full, _ := pl.Score(t.Context(), nil, nil, info); full != fwk.MaxScore {
			t.Errorf("the plugin of profile %d takes a full node for one that is full by %d of %d", i, full, fwk.MaxScore)
		}
	}
}

// TestEventsHaveAClientOfTheirOwn has an event told, and awaits it at the API server: the client of pods and bindings,
// whose turns are few, is another.
func TestEventsHaveAClientOfTheirOwn(t *testing.T) {
	wrote := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			wrote <- r.URL.Path
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(server.Close)
	c := &config.Config{KubeConfig: &rest.Config{Host: server.URL}, Client: fake.NewClientset()}
	c.InformerFactory = scheduler.NewInformerFactory(c.Client, 0, nil)
	c.ComponentConfig = *withProfiles(t, jobtreeProfile("jobtree"))
	args, err := argsOf(c.ComponentConfig.Profiles)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := compose(c, args, func() bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	go parts.controllers.Start(t.Context(), nil)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	parts.controllers.EventRecorder().Eventf(node, nil, corev1.EventTypeNormal, "LeftOut", "Count", "why")
	select {
	case path := <-wrote:
		if path != "/apis/events.k8s.io/v1/namespaces/default/events" {
			t.Errorf("written is %s", path)
		}
	case <-time.After(10 * time.Second):
		t.Error("no event is written by another client")
	}
}
