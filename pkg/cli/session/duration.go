package session

import (
	"time"

	"github.com/spf13/pflag"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// DurationVar defines a flag for a duration, which may be in days and weeks too.
func DurationVar(flags *pflag.FlagSet, to *time.Duration, name string, value time.Duration, usage string) {
	*to = value
	flags.Var((*duration)(to), name, usage)
}

// duration is the value of such a flag.
type duration time.Duration

func (d *duration) Set(text string) error {
	parsed, err := rqv1.ParseDuration(text)
	*d = duration(parsed)
	return err
}

// String is "0" for none, so that help does not show it as a default.
func (d *duration) String() string {
	if *d == 0 {
		return "0"
	}
	return time.Duration(*d).String()
}

func (d *duration) Type() string { return "duration" }
