// Package risk works out what the activation of a Reservation may do to a Run, and says it in words.
package risk

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// gravest are what cuts do, the gravest first. What a Run has on loan is not its own: giving it back is no cut (R23).
var gravest = []rqv1.CutAction{rqv1.CutLottery, rqv1.CutShrink, rqv1.CutDropSpare}

// Of returns what the entries of a conflict set may do to a Run, the gravest first, and the probability that any of it
// is done. Being shrunk and being ended exclude each other; a Run that is ended loses what its other entries list, too.
func Of(conflicts []rqv1.Conflict, run rqv1.NamespacedName) (cuts []rqv1.RiskCut, probability string) {
	gpus, cut, spares := int32(0), new(big.Rat), new(big.Rat)
	for i := range conflicts {
		c := &conflicts[i]
		if c.Run != run || !c.Action.Cuts() {
			continue
		}
		p := chance(c.Probability)
		gpus += c.GPUs
		if c.Action == rqv1.CutDropSpare {
			spares = p
		} else {
			cut.Add(cut, p)
		}
		if p.Sign() > 0 {
			cuts = append(cuts, rqv1.RiskCut{Action: c.Action, GPUs: c.GPUs, Width: c.Width, Probability: c.Probability})
		}
	}
	for i := range cuts {
		if cuts[i].Action == rqv1.CutLottery {
			cuts[i].GPUs = gpus
		}
	}
	slices.SortStableFunc(cuts, func(x, y rqv1.RiskCut) int {
		return cmp.Compare(slices.Index(gravest, x.Action), slices.Index(gravest, y.Action))
	})
	if one := big.NewRat(1, 1); cut.Cmp(one) > 0 {
		cut = one
	}
	if spares.Cmp(cut) > 0 {
		cut = spares
	}
	return cuts, resolver.Decimal(cut)
}

// EndsRun is the probability, from 0 to 1, that the Run is ended.
func EndsRun(r *rqv1.RunRisk) float64 {
	for i := range r.Cuts {
		if r.Cuts[i].Action == rqv1.CutLottery {
			return resolver.Likelihood(r.Cuts[i].Probability)
		}
	}
	return 0
}

// Compare orders risks by what they may do, the gravest first: those that are the likeliest to end the Run, then those
// that are the likeliest to cut it, then by date.
func Compare(x, y *rqv1.RunRisk) int {
	return cmp.Or(cmp.Compare(EndsRun(y), EndsRun(x)),
		cmp.Compare(resolver.Likelihood(y.Probability), resolver.Likelihood(x.Probability)), x.At.Compare(y.At.Time))
}

// Words says all that may be done to the Run, such as "25 % chance of being ended, 75 % chance of being shrunk to 8
// GPUs" or "will be shrunk to 8 GPUs".
func Words(r *rqv1.RunRisk) string {
	var words []string
	for i := range r.Cuts {
		words = append(words, phrase(&r.Cuts[i], "chance"))
	}
	if len(words) == 0 { // what was recorded by an earlier version
		return Percent(r.Probability) + " chance of being cut"
	}
	return strings.Join(words, ", ")
}

// Brief says the gravest that may be done to the Run, such as "25 % risk of being ended".
func Brief(r *rqv1.RunRisk) string {
	if len(r.Cuts) == 0 {
		return Percent(r.Probability) + " risk of being cut"
	}
	return phrase(&r.Cuts[0], "risk")
}

// AfterEnd says what becomes of a Run that a risk may end; empty where it does not end it.
func AfterEnd(run *rqv1.Run, r *rqv1.RunRisk) string {
	if EndsRun(r) == 0 {
		return ""
	}
	return "if it is ended " + Afterwards(run)
}

// Afterwards says whether a Run starts again once its pods have been ended for others' sake, or their nodes', as a
// sentence that goes on. For pods that others make nobody but their controllers knows.
func Afterwards(run *rqv1.Run) string {
	switch of := run.Spec.Pods; {
	case run.Spec.Theirs() && of != nil && of.Kind == "Pod":
		return "it does not start again unless a controller makes another pod"
	case run.Spec.Theirs() && (of == nil || of.APIGroup == "" || of.Kind == "PodGroup"):
		return "it starts again only if its pods are made again"
	case run.Spec.Theirs():
		return fmt.Sprintf("it starts again only if %s/%s makes its pods again", of.Kind, of.Name)
	case run.Spec.Checkpoints():
		return "it waits to start again from its checkpoint"
	}
	return "it does not start again, since it declares no checkpoint"
}

// phrase says what a cut does and how likely it is.
func phrase(c *rqv1.RiskCut, likelihood string) string {
	will, being := "be ended", "being ended"
	switch {
	case c.Action == rqv1.CutDropSpare:
		will, being = fmt.Sprintf("lose spares (%d GPUs)", c.GPUs), fmt.Sprintf("losing spares (%d GPUs)", c.GPUs)
	case c.Action == rqv1.CutShrink && c.Width > 0:
		will, being = fmt.Sprintf("be shrunk to %d GPUs", c.Width), fmt.Sprintf("being shrunk to %d GPUs", c.Width)
	case c.Action == rqv1.CutShrink:
		will, being = "be shrunk", "being shrunk"
	}
	if chance(c.Probability).Cmp(big.NewRat(1, 1)) >= 0 {
		return "will " + will
	}
	return fmt.Sprintf("%s %s of %s", Percent(c.Probability), likelihood, being)
}

// Percent prints a probability, a decimal from 0 to 1, in whole percent: 0.25 is "25 %". What is neither certain nor
// excluded is never printed as if it were: it is "<1 %" or ">99 %" then.
func Percent(probability string) string {
	p := chance(probability)
	hundredfold := new(big.Rat).Mul(p, big.NewRat(100, 1))
	switch whole := hundredfold.FloatString(0); {
	case p.Sign() > 0 && whole == "0":
		return "<1 %"
	case p.Cmp(big.NewRat(1, 1)) < 0 && whole == "100":
		return ">99 %"
	default:
		return whole + " %"
	}
}

// chance reads a probability, a decimal from 0 to 1; it is 0 when it is none.
func chance(probability string) *big.Rat {
	p, ok := new(big.Rat).SetString(probability)
	if !ok {
		return new(big.Rat)
	}
	return p
}
