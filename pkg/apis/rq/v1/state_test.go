package v1_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

// started makes a Run that started at an instant and takes some time at most.
func started(at time.Time, most time.Duration) *rqv1.Run {
	return &rqv1.Run{
		Spec: rqv1.RunSpec{Runtime: &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: most}}},
		Status: rqv1.RunStatus{Phase: rqv1.RunRunning, Conditions: []metav1.Condition{
			{Type: rqv1.ConditionStarted, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)}}},
	}
}

// A Run ends when its maxDuration is over since it started, and only while it runs.
func TestWhenARunEnds(t *testing.T) {
	tokyo, kathmandu := time.FixedZone("JST", 9*3600), time.FixedZone("NPT", 5*3600+45*60)
	for name, c := range map[string]struct {
		most   time.Duration
		at     time.Time
		change func(r *rqv1.Run)
		want   time.Time // zero for never
	}{
		"eight hours":                  {most: 8 * time.Hour, want: noon.Add(8 * time.Hour)},
		"a moment":                     {most: time.Millisecond, want: noon.Add(time.Millisecond)},
		"until the year's last second": {most: 363*24*time.Hour + 12*time.Hour - time.Second, want: time.Date(2030, 12, 31, 23, 59, 59, 0, time.UTC)},
		"over a leap day":              {at: time.Date(2028, 2, 28, 12, 0, 0, 0, time.UTC), most: 24 * time.Hour, want: time.Date(2028, 2, 29, 12, 0, 0, 0, time.UTC)},
		"by a clock in Tokyo":          {at: noon.In(tokyo), most: time.Hour, want: noon.Add(time.Hour)},
		"by a clock in Kathmandu":      {at: noon.In(kathmandu), most: time.Hour, want: noon.Add(time.Hour)},
		"the longest that is admitted": {most: 999999 * time.Hour, want: noon.Add(999999 * time.Hour)},
		"no limit":                     {most: time.Hour, change: func(r *rqv1.Run) { r.Spec.Runtime.MaxDuration = nil }},
		"no runtime":                   {most: time.Hour, change: func(r *rqv1.Run) { r.Spec.Runtime = nil }},
		"a limit of nothing":           {most: 0},
		"a limit below nothing":        {most: -time.Hour},
		"a Run that waits again":       {most: time.Hour, change: func(r *rqv1.Run) { r.Status.Phase = rqv1.RunPending }},
		"one that is new":              {most: time.Hour, change: func(r *rqv1.Run) { r.Status = rqv1.RunStatus{} }},
		"one that has completed":       {most: time.Hour, change: func(r *rqv1.Run) { r.Status.Phase = rqv1.RunCompleted }},
		"one that has failed":          {most: time.Hour, change: func(r *rqv1.Run) { r.Status.Phase = rqv1.RunFailed }},
		"of which it is not said":      {most: time.Hour, change: func(r *rqv1.Run) { r.Status.Conditions = nil }},
		"that is said not to": {most: time.Hour, change: func(r *rqv1.Run) {
			r.Status.Conditions[0].Status = metav1.ConditionFalse
		}},
	} {
		at := c.at
		if at.IsZero() {
			at = noon
		}
		run := started(at, c.most)
		if c.change != nil {
			c.change(run)
		}
		if got, ends := run.EndsAt(); ends == c.want.IsZero() || !got.Equal(c.want) {
			t.Errorf("%s: it ends at %s (%v), want %s", name, got, ends, c.want)
		}
	}
}

// What is admitted as a duration, and has been stored and read again, ends a Run exactly that long after its start, which
// is to the second; later durations end it later.
func TestDurationsThatAreAdmittedEndRuns(t *testing.T) {
	texts := rapid.StringMatching(`([0-9]{1,6}(\.[0-9]{1,9})?h)?([0-9]{1,6}(\.[0-9]{1,9})?m)?([0-9]{1,6}(\.[0-9]{1,9})?s)?([0-9]{1,6}ms)?`).
		Filter(func(text string) bool { return text != "" && len(text) <= 32 })
	rapid.Check(t, func(t *rapid.T) {
		var ends [2]time.Time
		var lasts [2]time.Duration
		at := time.Unix(rapid.Int64Range(0, 1<<34).Draw(t, "start"), 0)
		for i := range ends {
			text := texts.Draw(t, "duration")
			run := started(at, 0)
			if err := json.Unmarshal([]byte(`{"maxDuration":"`+text+`"}`), run.Spec.Runtime); err != nil {
				t.Fatal(err)
			}
			lasts[i] = run.Spec.MaxDuration()
			stored, err := json.Marshal(run)
			if err != nil {
				t.Fatal(err)
			}
			run = &rqv1.Run{}
			if err := json.Unmarshal(stored, run); err != nil {
				t.Fatal(err)
			}
			end, bounded := run.EndsAt()
			if bounded != (lasts[i] > 0) || bounded && (end.Sub(at) != lasts[i] || !end.After(at)) {
				t.Fatalf("%s after %s, which is %s, is %s (%v)", text, at, lasts[i], end, bounded)
			}
			ends[i] = end
		}
		if lasts[0] > 0 && lasts[1] > 0 && ends[0].Before(ends[1]) != (lasts[0] < lasts[1]) {
			t.Fatalf("%s ends at %s and %s at %s", lasts[0], ends[0], lasts[1], ends[1])
		}
	})
}

func TestEnded(t *testing.T) {
	for phase, want := range map[rqv1.RunPhase]bool{"": false, rqv1.RunPending: false, rqv1.RunRunning: false,
		rqv1.RunCompleted: true, rqv1.RunFailed: true} {
		if got := (&rqv1.Run{Status: rqv1.RunStatus{Phase: phase}}).Ended(); got != want {
			t.Errorf("a Run that is %q has ended: %v", phase, got)
		}
	}
	for state, want := range map[rqv1.ReservationState]bool{"": false, rqv1.ReservationPending: false,
		rqv1.ReservationActivating: false, rqv1.ReservationReleased: true, rqv1.ReservationCanceled: true} {
		if got := (&rqv1.Reservation{Status: rqv1.ReservationStatus{State: state}}).Ended(); got != want {
			t.Errorf("a Reservation that is %q has ended: %v", state, got)
		}
	}
}

// Widths and spares are read from the spec as it is written, under each of their names.
func TestWidthsAndSparesAsTheyAreWritten(t *testing.T) {
	for spec, want := range map[string][2]int32{ // desired, spares a group
		`{resources: {totalGPUs: 32}}`: {32, 0},
		`{resources: {totalGPUs: 32}, malleable: {minTotalGPUs: 8, maxTotalGPUs: 64, stepGPUs: 8}}`:                      {64, 0},
		`{resources: {totalGPUs: 32}, malleable: {minTotalGPUs: 8, maxTotalGPUs: 64, stepGPUs: 8, desiredTotalGPUs: 8}}`: {8, 0},
		`{resources: {totalGPUs: 1000000}, malleable: {minTotalGPUs: 1, maxTotalGPUs: 1000000, stepGPUs: 1}}`:            {1000000, 0},
		`{resources: {totalGPUs: 32}, spares: 4}`:                                                                        {32, 4},
		`{resources: {totalGPUs: 32}, sparesPerGroup: 4}`:                                                                {32, 4},
		`{resources: {totalGPUs: 32}, spares: 4, sparesPerGroup: 4}`:                                                     {32, 4},
		`{resources: {totalGPUs: 32}, spares: 0}`:                                                                        {32, 0},
	} {
		var run rqv1.RunSpec
		if err := yaml.UnmarshalStrict([]byte(spec), &run); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, [2]int32{run.Desired(), run.GroupSpares()}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", spec, diff)
		}
	}
}

// What is to stand by is told in whole pods as soon as their size is known.
func TestSparesInWholePods(t *testing.T) {
	size, asked := int32(8), int32(9)
	run := &rqv1.Run{Spec: rqv1.RunSpec{SparesPerGroup: &asked}}
	got := []int32{run.GroupSpares()}
	run.Spec.Resources.GPUsPerPod = &size
	got = append(got, run.GroupSpares())
	run.Status.SparesPerGroup = 12
	if diff := cmp.Diff([]int32{9, 16, 12}, append(got, run.GroupSpares())); diff != "" {
		t.Errorf("unknown, fixed by the Run, told (-want +got):\n%s", diff)
	}
}

// What a Lease says of its holder and payer, and what follows where it does not say it.
func TestWhatALeaseSays(t *testing.T) {
	lease := &rqv1.Lease{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{rqv1.LabelIndex: "17",
		rqv1.LabelPodUID: "pod-uid"}}}
	lease.Spec.Owner = "org:ai"
	lease.Spec.Slice.Nodes = []rqv1.NodeGPUs{{Name: "n1", GPUs: 8}}
	if lease.Index() != 17 || lease.PodUID() != "pod-uid" || lease.Node() != "n1" || lease.GPUs() != 8 {
		t.Errorf("it is of index %d of pod %s, with %d GPUs on %s", lease.Index(), lease.PodUID(), lease.GPUs(), lease.Node())
	}
	lease.Spec.Slice.Nodes = append(lease.Spec.Slice.Nodes, rqv1.NodeGPUs{Name: "n2", GPUs: 4})
	if lease.GPUs() != 12 {
		t.Errorf("on two nodes it holds %d GPUs, want 12", lease.GPUs())
	}
	for said, want := range map[rqv1.LeasePayer]rqv1.Relation{
		{Owner: "org:ai"}: rqv1.RelationOwn,
		{Owner: "org:mm"}: rqv1.RelationSponsor,
		{Owner: "org", Relation: rqv1.RelationAncestor}:    rqv1.RelationAncestor,
		{Owner: "org:bio", Relation: rqv1.RelationSibling}: rqv1.RelationSibling,
		{Owner: "org:ai", Relation: rqv1.RelationSponsor}:  rqv1.RelationSponsor, // the Budget has changed hands since
		{Owner: "org:ai:x"}: rqv1.RelationSponsor,
	} {
		lease.Spec.Payer = said
		if got := lease.Relation(); got != want {
			t.Errorf("payer %+v is %s, want %s", said, got, want)
		}
	}
}
