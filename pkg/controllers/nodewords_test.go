package controllers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
)

// TestNodesThatAreLeftOut are told so, once for as long as it is so.
func TestNodesThatAreLeftOut(t *testing.T) {
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	l := &nodeWords{book: book.New(args), clock: clocktesting.NewFakeClock(noon)}
	clock := l.clock.(*clocktesting.FakeClock)
	has := func(labels ...string) func() {
		return func() {
			node := nodeOf8("n0")
			for _, label := range labels {
				delete(node.Labels, label)
			}
			l.book.SetNode(node)
		}
	}
	recorder := events.NewFakeRecorder(10)
	l.events = recorder
	l.book.SetNode(nodeOf8("n1"))
	go l.watch(t.Context())
	awaitWaiters(clock)
	const domain = `Warning LeftOut jobtree places nothing here: label "fabric.domain" is missing`
	const region = `Warning LeftOut jobtree places nothing here: label "region" is missing`
	for _, step := range []struct {
		what string
		does func()
		told []string
	}{
		{"it has all labels", has(), nil},
		{"it has no domain", has("fabric.domain"), []string{domain}},
		{"nor by and by", has("fabric.domain"), nil},
		{"but no region either", has("region", "fabric.domain"), []string{region}},
		{"it has all of them again", has(), nil},
		{"and loses one as before", has("region", "fabric.domain"), []string{region}},
		{"it is gone", func() { l.book.RemoveNode("n0") }, nil},
		{"and made anew", has("region", "fabric.domain"), []string{region}},
	} {
		step.does()
		tick(clock, 5*time.Second)
		var got []string
		for len(recorder.Events) > 0 {
			got = append(got, <-recorder.Events)
		}
		if diff := cmp.Diff(step.told, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.what, diff)
		}
	}
}
