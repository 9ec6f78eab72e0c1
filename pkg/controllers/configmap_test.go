package controllers

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	core "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/metrics/testutil"

	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/brake"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/dump"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
)

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name}, Data: data}
}

// TestFollowingAConfigMap tells of one as it comes, changes and goes, and of no other.
func TestFollowingAConfigMap(t *testing.T) {
	s := newServer(t)
	said := make(chan string)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	over := make(chan error)
	go func() {
		over <- followConfigMap(ctx, s.kube, "mine", func(c *corev1.ConfigMap) {
			if c == nil {
				said <- "none"
				return
			}
			said <- c.Name + " " + c.Data["x"]
		})
	}()
	if first := <-said; first != "none" {
		t.Errorf("said at first: %s", first)
	}
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	maps := s.kube.CoreV1().ConfigMaps(Namespace)
	write := func(x string) error {
		_, err := maps.Update(ctx, configMap("mine", map[string]string{"x": x}), metav1.UpdateOptions{})
		return err
	}
	for _, step := range []struct {
		do   func() error
		want string
	}{
		{func() error {
			_, err := maps.Create(ctx, configMap("mine", map[string]string{"x": "1"}), metav1.CreateOptions{})
			return err
		}, "mine 1"},
		{func() error { return write("2") }, "mine 2"},
		{func() error { return maps.Delete(ctx, "mine", metav1.DeleteOptions{}) }, "none"},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if got := <-said; got != step.want {
			t.Errorf("said %q, want %q", got, step.want)
		}
	}
	for _, action := range s.kube.Actions() {
		if list, ok := action.(core.ListAction); ok && list.GetListRestrictions().Fields.String() != "metadata.name=mine" {
			t.Errorf("listed are those with %s", list.GetListRestrictions().Fields)
		}
	}
}

// TestAConfigMapThatCannotBeRead is not taken for none.
func TestAConfigMapThatCannotBeRead(t *testing.T) {
	s := newServer(t)
	s.faults = []fault{{on: "list configmaps", err: forbidden}}
	ctx, end := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer end()
	if err := followConfigMap(ctx, s.kube, "mine", func(c *corev1.ConfigMap) { t.Errorf("said %v", c) }); err != nil {
		t.Error(err)
	}
}

// TestWhatIsSaidAboutCuts is told in an event on the ConfigMap, by a metric and to the book, when it changes.
func TestWhatIsSaidAboutCuts(t *testing.T) {
	metrics.Register()
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &brakes{book: book.New(args)}
	b.book.SetBrake(unread)
	const said = "cuts are paused, since ConfigMap jobtree-cuts has entries that cannot be read: " +
		`paused is "perhaps": it must be true or false`
	ops := map[string]string{"paused": "true", "pausedBy": "ops", "pausedBecause": "drill"}
	for _, step := range []struct {
		what  string
		said  map[string]string // nil where there is no ConfigMap
		event string
		known string
	}{
		{"nobody has said anything", nil, "", ""},
		{"somebody pauses", ops, "Warning CutsPaused cuts are paused by ops: drill", "cuts are paused by ops: drill"},
		{"the same, written again", ops, "", "cuts are paused by ops: drill"},
		{"nobody knows what is meant", map[string]string{"paused": "perhaps"},
			"Warning NotUnderstood " + said, said},
		{"cuts are resumed", map[string]string{"paused": "false"}, "Normal CutsResumed cuts are resumed", ""},
		{"an activation is called off, and nothing paused",
			map[string]string{"call-off.ns.train-r0": `{"by": "ops"}`}, "", ""},
		{"somebody pauses again", ops, "Warning CutsPaused cuts are paused by ops: drill",
			"cuts are paused by ops: drill"},
		{"the ConfigMap is deleted", nil, "", ""},
	} {
		recorder := events.NewFakeRecorder(10)
		b.events = recorder
		var is *corev1.ConfigMap
		if step.said != nil {
			is = configMap(brake.ConfigMap, step.said)
		}
		b.apply(t.Context(), is)
		if got := strings.Join(told(recorder), "; "); got != step.event {
			t.Errorf("%s: told %q, want %q", step.what, got, step.event)
		}
		state := brake.State{}
		if is != nil {
			state = brake.Parse(is.Data)
		}
		if known := b.book.SetBrake(state); known != step.known {
			t.Errorf("%s: the book knows %q, want %q", step.what, known, step.known)
		}
		paused, err := testutil.GetGaugeMetricValue(metrics.CutsPaused)
		if err != nil || (paused == 1) != (step.known != "") {
			t.Errorf("%s: the metric says %v, %v", step.what, paused, err)
		}
	}
}

// TestDump answers what is asked of a Run, once.
func TestDump(t *testing.T) {
	for name, test := range map[string]struct {
		run    types.NamespacedName
		faults []fault
		says   string // of the answer, or why there is none
		silent bool
	}{
		"a Run": {run: train, says: `"name":"train"`},
		"none": {run: types.NamespacedName{Namespace: "ns", Name: "none"},
			says: "does not know Run ns/none"},
		"by who has left":        {run: train, faults: []fault{{on: "update configmaps", err: notFound}}, silent: true},
		"of who leads no more":   {run: train, faults: []fault{{on: "update configmaps", err: fenced}}, silent: true},
		"and asks again at once": {run: train, faults: []fault{{on: "update configmaps", err: conflict}}, silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.submit()
			c.see()
			asked := configMap(dump.ConfigMap, nil)
			dump.Ask(asked, test.run)
			if err := c.kube.Tracker().Add(asked); err != nil {
				t.Fatal(err)
			}
			d := &dumps{kube: c.kube, see: c.observed}
			c.faults = test.faults
			d.answer(t.Context(), asked)
			c.faults = nil
			stored, err := c.kube.CoreV1().ConfigMaps(Namespace).Get(t.Context(), dump.ConfigMap, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			answer, refused := dump.Read(stored)
			switch {
			case test.silent:
				if answer != nil || refused != nil {
					t.Errorf("answered: %s, %v", answer, refused)
				}
			case refused != nil:
				check(t, refused, test.says)
			case !json.Valid(answer) || !strings.Contains(string(answer), test.says):
				t.Errorf("answered: %s", answer)
			}
			c.written()
			d.answer(t.Context(), nil)
			if d.answer(t.Context(), stored); !test.silent {
				if diff := cmp.Diff([]string(nil), c.written()); diff != "" {
					t.Errorf("answered again (-want +got):\n%s", diff)
				}
			}
		})
	}
}
