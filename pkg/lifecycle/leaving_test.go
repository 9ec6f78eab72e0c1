package lifecycle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestWhoIsAskedAboutBeforeAGangStartsAgain has the time of a gang be over that seems not to be bound as a whole: all
// of its pods go if that is so of the first which seems not to run.
func TestWhoIsAskedAboutBeforeAGangStartsAgain(t *testing.T) {
	const late = 2 * time.Minute
	for name, c := range map[string]struct {
		pods   []string
		leases map[int]string
		want   string
	}{
		"the first is not bound": {[]string{"-", "n1", "-", "n3"}, map[int]string{1: "n1", 3: "n3"}, "run-0 Unbound"},
		"another is not":         {[]string{"n0", "n1", "-", "n3"}, everywhere(), "run-2 Unbound"},
		"one is not there":       {[]string{"n0", "n1", "", "n3"}, everywhere(), "run-2 Unbound"},
		"one has no Lease": {[]string{"n0", "n1", "n2", "n3"}, map[int]string{0: "n0", 1: "n1", 3: "n3"},
			"run-2 Unpaid"},
		"one has ended well": {[]string{"n0 Succeeded", "n1", "-", "n3"}, map[int]string{1: "n1", 3: "n3"}, "run-2 Unbound"},
		"one has been told to go": {[]string{"n0", "n1 deleting", "-", "n3"}, everywhere(),
			"nobody "},
	} {
		o := scene(func(o *Observed) {
			o.pods(c.pods...)
			o.leases(late, c.leases)
			o.allLeased()
		})
		var asked []string
		for _, d := range Decide(o).Delete {
			about := "nobody"
			if d.About != nil {
				about = d.About.Name
			}
			asked = append(asked, fmt.Sprintf("%s %s", about, d.If))
		}
		if diff := cmp.Diff([]string{c.want}, slices.Compact(asked)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestASpareIsAskedAbout as a rank is.
func TestASpareIsAskedAbout(t *testing.T) {
	for description, want := range map[string]string{"-": "run-s0", "": "run-s0", "n4": "run-s1"} {
		o := scene(func(o *Observed) {
			o.pods("n0", "n1", "n2", "n3")
			o.spares(description, "")
			o.leases(2*time.Minute, everywhere())
			o.standing(2 * time.Minute)
		})
		for _, d := range Decide(o).Delete {
			if d.About == nil || d.About.Name != want || d.If != Unbound || d.Run != o.Run.UID {
				t.Errorf("spare %q: pod %s goes if %s of %v", description, d.Pod.Name, d.If, d.About)
			}
		}
	}
}
