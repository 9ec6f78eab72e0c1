package risk

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// victim is the Run of these tests; another Run's entries are none of its business.
var victim, another = rqv1.NamespacedName{Namespace: "mm", Name: "victim"}, rqv1.NamespacedName{Namespace: "mm"}

func conflict(action rqv1.CutAction, gpus, width int32, probability string) rqv1.Conflict {
	return rqv1.Conflict{Run: victim, Action: action, GPUs: gpus, Width: width, Probability: probability}
}

// What may become of a Run is told by what is done to it and how likely that is, the gravest first.
func TestWhatMayBecomeOfARun(t *testing.T) {
	theirs := conflict(rqv1.CutLottery, 64, 0, "1")
	theirs.Run = another
	for name, test := range map[string]struct {
		conflicts                 []rqv1.Conflict
		words, brief, probability string
	}{
		"drawn": {[]rqv1.Conflict{conflict(rqv1.CutLottery, 8, 0, "0.25")},
			"25 % chance of being ended", "25 % risk of being ended", "0.25"},
		"drawn for certain": {[]rqv1.Conflict{conflict(rqv1.CutLottery, 8, 0, "1")},
			"will be ended", "will be ended", "1"},
		"shrunk for certain": {[]rqv1.Conflict{theirs, conflict(rqv1.CutShrink, 8, 8, "1")},
			"will be shrunk to 8 GPUs", "will be shrunk to 8 GPUs", "1"},
		"shrunk or drawn": {[]rqv1.Conflict{conflict(rqv1.CutShrink, 8, 8, "0.75"), conflict(rqv1.CutLottery, 8, 0, "0.25")},
			"25 % chance of being ended, 75 % chance of being shrunk to 8 GPUs", "25 % risk of being ended", "1"},
		"loses spares": {[]rqv1.Conflict{conflict(rqv1.CutDropSpare, 2, 0, "0.5"), conflict(rqv1.CutLottery, 8, 0, "0")},
			"50 % chance of losing spares (2 GPUs)", "50 % risk of losing spares (2 GPUs)", "0.5"},
		"gives back what is on loan": {[]rqv1.Conflict{conflict(rqv1.CutReturn, 8, 16, "1"), theirs},
			"0 % chance of being cut", "0 % risk of being cut", "0"},
		"a width that nobody recorded": {[]rqv1.Conflict{conflict(rqv1.CutShrink, 8, 0, "1")},
			"will be shrunk", "will be shrunk", "1"},
	} {
		cuts, probability := Of(test.conflicts, victim)
		r := &rqv1.RunRisk{Probability: probability, Cuts: cuts}
		if diff := cmp.Diff([]string{test.words, test.brief, test.probability},
			[]string{Words(r), Brief(r), probability}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Whoever is ended loses what its other entries list, too.
func TestWhatAnEndTakes(t *testing.T) {
	cuts, _ := Of([]rqv1.Conflict{conflict(rqv1.CutDropSpare, 2, 0, "1"), conflict(rqv1.CutShrink, 8, 8, "0.75"),
		conflict(rqv1.CutLottery, 8, 0, "0.25")}, victim)
	want := []rqv1.RiskCut{{Action: rqv1.CutLottery, GPUs: 18, Probability: "0.25"},
		{Action: rqv1.CutShrink, GPUs: 8, Width: 8, Probability: "0.75"},
		{Action: rqv1.CutDropSpare, GPUs: 2, Probability: "1"}}
	if diff := cmp.Diff(want, cuts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Being ended is graver than being shrunk for certain.
func TestWhichRiskIsTheGravest(t *testing.T) {
	ends := rqv1.RunRisk{Probability: "0.25", Cuts: []rqv1.RiskCut{{Action: rqv1.CutLottery, Probability: "0.25"}}}
	shrinks := rqv1.RunRisk{Probability: "1", Cuts: []rqv1.RiskCut{{Action: rqv1.CutShrink, Probability: "1"}}}
	if Compare(&ends, &shrinks) >= 0 || Compare(&shrinks, &ends) <= 0 {
		t.Error("a Run that may be ended is told first that it is shrunk")
	}
}

// A probability is told in whole percent, and as certain or excluded only where it is.
func TestWholePercent(t *testing.T) {
	for probability, want := range map[string]string{"0": "0 %", "1": "100 %", "1.0": "100 %", "0.25": "25 %",
		"0.3333": "33 %", "0.7083": "71 %", "0.125": "13 %", "0.0001": "<1 %", "0.004": "<1 %", "0.9999": ">99 %",
		"often": "0 %"} {
		if diff := cmp.Diff(want, Percent(probability)); diff != "" {
			t.Errorf("%s: %s", probability, diff)
		}
	}
}
