package integration

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/davidlangworthy/jobtree/test/controlplane"
	"github.com/davidlangworthy/jobtree/test/story"
	"github.com/davidlangworthy/jobtree/test/zoo"
)

// visited are the stories of the zoo that are told on a real control plane always: of kinds that are unlike.
// JOBTREE_ZOO, a regular expression, has those be told whose names match.
var visited = []string{"job-policies-is-evicted", "jobset-depends-waits", "statefulset-llama-loses-a-node",
	"lws-vllm-loses-a-node", "raycluster-hosts-waits", "appwrapper-torch-is-evicted", "argo-train-starts"}

// TestZoo has what people's workloads go through told on a real control plane, as TestZoo beside the controllers has it
// on the simulated cluster. Controllers that it has run; the others are played by the table of kinds.
func TestZoo(t *testing.T) {
	t.Parallel()
	of, stories := os.Getenv("JOBTREE_ZOO"), zoo.Stories(true)
	named := func(name string) bool {
		if of == "" {
			return slices.Contains(visited, name)
		}
		return regexp.MustCompile("^(" + of + ")").MatchString(name)
	}
	stories = slices.DeleteFunc(stories, func(s story.Story) bool { return !named(s.Name) })
	if of == "" && len(stories) != len(visited) {
		t.Errorf("%d stories of %d are there", len(stories), len(visited))
	}
	var c *cluster
	if of == "" {
		c = liveCluster(t)
	} else {
		var err error
		c, err = openCluster(controlplane.Options{Dir: t.TempDir(), Scheduler: true, Kwok: true, JobSet: true, LWS: true,
			PodGroups: true, Config: schedulerConfig(t, t.TempDir(), withoutElection, stories[0].Arguments())})
		if err != nil {
			t.Fatalf("starting a cluster: %v", err)
		}
		t.Cleanup(c.Stop)
	}
	for _, kind := range zoo.Kinds() {
		if servedByOthers(kind) {
			serve(t, c, kind)
		}
	}
	t.Run("together", func(t *testing.T) {
		for _, s := range stories {
			if s.Alone == "" {
				t.Run(s.Name, func(t *testing.T) {
					t.Parallel()
					visit(t, c, &s)
				})
			}
		}
	})
	for _, s := range stories {
		if s.Alone != "" {
			t.Run(s.Name, func(t *testing.T) { visit(t, c, &s) })
		}
	}
}

// visit tells a story of the zoo at a site whose pods may spend as its owner.
func visit(t *testing.T, c *cluster, s *story.Story) {
	t.Helper()
	r := newRealCluster(t, c, s)
	r.s.mayUse(r.s.owner)
	story.Tell(t, r, s)
}

// servedByOthers reports whether an API server serves a kind only by a definition of it.
func servedByOthers(kind schema.GroupVersionKind) bool {
	switch kind.Group {
	case "", "batch", "apps", "scheduling.k8s.io", "scheduling.x-k8s.io", "jobset.x-k8s.io",
		"leaderworkerset.x-k8s.io":
		return false
	}
	return true
}
