package session

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// A flag for a duration takes days, has its default in the help unless that is none, and says what to write instead.
func TestDurationFlags(t *testing.T) {
	var most, wait time.Duration
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	DurationVar(flags, &most, "most", 0, "The most.")
	DurationVar(flags, &wait, "wait", time.Second, "How long to wait.")
	const help = "      --most duration   The most.\n      --wait duration   How long to wait. (default 1s)\n"
	if diff := cmp.Diff(help, flags.FlagUsages()); diff != "" {
		t.Errorf("help (-want +got):\n%s", diff)
	}
	if err := flags.Parse([]string{"--most", "3d"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]time.Duration{72 * time.Hour, time.Second}, []time.Duration{most, wait}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const wrong = `invalid argument "2 hours" for "--most" flag: "2 hours" is not a duration, such as 90m, 36h, 3d or 1w`
	if err := flags.Parse([]string{"--most=2 hours"}); err == nil || err.Error() != wrong {
		t.Errorf("got %v, want %s", err, wrong)
	}
}
