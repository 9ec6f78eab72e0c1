package story

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/davidlangworthy/jobtree/pkg/config"
)

// Story is something that happens to a cluster.
type Story struct {
	// Name is of small letters, digits and hyphens, and no other Story's.
	Name string
	// Args are what the scheduler is configured with, as JobtreeArgs in its configuration file, beside what all stories
	// have.
	Args map[string]any
	// Alone says why no other story may be told on the same control plane: it kills the scheduler, or changes what all
	// share.
	Alone string
	// Real says which real part the story needs, such as a controller; it is told on a real control plane too, then.
	Real string
	// Long says why it takes more than minutes on a real control plane, where nobody can have time pass: it is told there
	// only when its whole name is asked for.
	Long string
	// Forgets says what a process that dies midway may leave untold, such as a word of what it has just done; the story
	// is not told again with such a process, then.
	Forgets string
	// Play tells it.
	Play func(*Teller)
}

// configured is what the scheduler of every story is configured with.
var configured = map[string]any{
	"gangDeadline":  "30s",
	"nodeLossGrace": "2m", // a machine that is busy may keep kwok from renewing leases
}

// soon are arguments by which Runs are started at others' cost within seconds.
func soon(lead string) map[string]any {
	return map[string]any{"reservationLead": lead, "noticePeriod": "1s", "activationShield": "1s", "windowDelay": "1s"}
}

// with returns arguments with another.
func with(args map[string]any, name string, value any) map[string]any {
	out := maps.Clone(args)
	out[name] = value
	return out
}

// Arguments returns all that the scheduler is configured with.
func (s *Story) Arguments() map[string]any {
	out := maps.Clone(configured)
	maps.Copy(out, s.Args)
	return out
}

// Parsed returns these as the scheduler reads them.
func (s *Story) Parsed() (*config.Args, error) {
	text, err := yaml.Marshal(s.Arguments())
	if err != nil {
		return nil, err
	}
	args, err := config.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("story %s: %w", s.Name, err)
	}
	return args, nil
}

// All returns all stories, in order of their names.
func All() []Story {
	all := slices.Concat(evictedStories(), cordonedStories(), restartStories(), spareStories(), lossStories(),
		lifeStories(), refusedStories(), turnStories(), editStories(),
		nodeStories(), drainStories(), timeStories(), sizeStories(), moneyStories(), borrowedStories(),
		opportunisticStories(),
		cutStories(), crowdStories(), savedStories(), roomStories(),
		waitStories(), backfillStories(), priorityStories(), apartStories(), spreadStories(), spreadRoomStories(),
		signStories(), massLossStories(), comebackStories(), aheadStories(), takeoverStories(), firstStories(),
		orderStories(), vanishStories())
	slices.SortFunc(all, func(a, b Story) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// T is a test, as far as a Teller needs one.
type T interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Context() context.Context
}

// Tell plays a story on a cluster, and returns how it has ended; as on another, if that comes about. Then all Runs are
// removed, and nothing of them may be held any more.
func Tell(t T, c Cluster, s *Story, on ...*Record) *Record {
	t.Helper()
	args, err := s.Parsed()
	if err != nil {
		t.Fatalf("%v", err)
	}
	teller := &Teller{T: t, Cluster: c, args: args, site: c.Site()}
	s.Play(teller)
	teller.Sound()
	record := teller.record()
	for _, other := range on {
		err := c.Until(func() error {
			record = teller.record()
			return record.Differs(other)
		})
		if err != nil {
			t.Errorf("it ends otherwise: (-here +elsewhere) %v", err)
		}
	}
	teller.end()
	return record
}
