package lifecycle

import (
	"cmp"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
)

// Observed is a Run as it stands: data alone, so that it can be kept and decided on again.
type Observed struct {
	book.Objects
	book.Look
	// Problem is what the API server last held against the Run's pods; empty when it took them.
	Problem string
	// Unended is why the API server does not let the first of the pods go that were to; empty when it does.
	Unended string
	// Unsaid is until when the Run gets no pods, since its status could not say that it runs; zero when it could.
	Unsaid time.Time
	Now    time.Time
	Rules
}

// Rules are the parts of the configuration that decisions go by.
type Rules struct {
	// GangDeadline is the longest that a gang may be partly bound.
	GangDeadline time.Duration
	// NoticePeriod is the least time that pods which are cut have to end, and OpportunisticGrace the most that shards have
	// which give way.
	NoticePeriod, OpportunisticGrace time.Duration
	// MaxGracePeriod is the longest that a pod is made to take to end (R37).
	MaxGracePeriod time.Duration
	// FinishedRunTTL is how long after its end a Run goes that does not say so itself (R39); 0 for never.
	FinishedRunTTL time.Duration
	// PauseImage is what pods run where no template says.
	PauseImage string
	// MostDeaths is how many ends of ranks a Run's status tells of; 0 for as many as the API allows.
	MostDeaths int
}

// mostDeaths is how many they are.
func (r *Rules) mostDeaths() int { return cmp.Or(r.MostDeaths, rqv1.MostDeaths) }

// RulesOf returns what decisions go by of a configuration.
func RulesOf(args *config.Args) Rules {
	return Rules{GangDeadline: args.GangDeadline.Duration, NoticePeriod: args.NoticePeriod.Duration,
		OpportunisticGrace: args.OpportunisticGrace.Duration, MaxGracePeriod: args.MaxGracePeriod.Duration,
		FinishedRunTTL: args.FinishedRunTTL.Duration, PauseImage: args.PauseImage}
}

// Waits returns the Reservation that the Run waits for; nil when it waits for none.
func (o *Observed) Waits() *rqv1.Reservation {
	for _, r := range o.Reservations {
		if !r.Ended() {
			return r
		}
	}
	return nil
}
