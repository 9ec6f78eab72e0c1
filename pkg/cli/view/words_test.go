package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
)

func TestCountdownAndClock(t *testing.T) {
	var got []string
	for _, d := range []time.Duration{-time.Second, 0, 999 * time.Millisecond, time.Second, 9*time.Minute + time.Second,
		15*time.Minute - time.Second, 90 * time.Minute, 50 * time.Hour} {
		got = append(got, Countdown(clitest.After(d), clitest.Noon))
	}
	west := clitest.Noon.In(time.FixedZone("west", -8*3600))
	for _, d := range []time.Duration{0, time.Hour, 20 * time.Hour} {
		got = append(got, Clock(clitest.After(d), clitest.Noon), Clock(clitest.After(d), west))
	}
	want := []string{"now", "now", "now", "in 1s", "in 9m1s", "in 15m", "in 90m", "in 2d2h",
		"12:00", "04:00", "13:00", "05:00", "Jan 3 08:00", "Jan 3 00:00"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCutInWords(t *testing.T) {
	for want, cut := range map[string]rqv1.Cut{
		"cut by lottery":                      {Action: rqv1.CutLottery},
		"gave up spares":                      {Action: rqv1.CutDropSpare, Spares: []int32{1}},
		"shrunk to 96 GPUs":                   {Action: rqv1.CutShrink, Width: clitest.Ptr[int32](96)},
		"gave back what was beyond 96 GPUs":   {Action: rqv1.CutReturn, Width: clitest.Ptr[int32](96)},
		"gave back what was beyond its total": {Action: rqv1.CutReturn},
		"shrunk":                              {Action: rqv1.CutShrink},
	} {
		if diff := cmp.Diff(want, CutInWords(cut)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestBarsFor(t *testing.T) {
	t.Setenv("LANG", "C.UTF-8")
	if p := BarsFor(&strings.Builder{}); p != Ascii {
		t.Errorf("what is no terminal gets %s", fmt.Sprint(p.Cells))
	}
}
