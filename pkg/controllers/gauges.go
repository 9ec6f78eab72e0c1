package controllers

import (
	"slices"
	"strconv"
	"strings"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
	"github.com/davidlangworthy/jobtree/pkg/published"
)

// gaugeFleet tells in metrics how much of the fleet is free.
func gaugeFleet(fleet published.Fleet) {
	gpus, nodes := map[[3]string]float64{}, map[[3]string]float64{}
	for i := range fleet.Domains {
		d := &fleet.Domains[i]
		domain := strings.Join(d.Values, "/")
		gpus[[3]string{domain, d.GPUType, "all"}] = float64(d.GPUs)
		gpus[[3]string{domain, d.GPUType, "free"}] = float64(d.Free)
		gpus[[3]string{domain, d.GPUType, "promised"}] = float64(d.Promised)
		nodes[[3]string{domain, d.GPUType, "all"}] = float64(d.Nodes)
		nodes[[3]string{domain, d.GPUType, "out_of_service"}] = float64(d.OutOfService)
	}
	metrics.Tell(metrics.FleetGPUs, gpus)
	metrics.Tell(metrics.FleetNodes, nodes)
}

// otherTypes stands for all types of GPU that the fleet does not have: people write what they like, and each word would
// be a series of its own.
const otherTypes = "other"

// gaugeWaiting tells in metrics why Runs wait.
func gaugeWaiting(waiting map[book.WaitsFor]int, fleet published.Fleet) {
	runs := map[[3]string]float64{}
	for of, n := range waiting {
		date, gpuType := "undated", of.GPUType
		if of.Dated {
			date = "dated"
		}
		if !slices.ContainsFunc(fleet.Domains, func(d published.Domain) bool { return d.GPUType == gpuType }) {
			gpuType = otherTypes
		}
		runs[[3]string{string(of.Reason), gpuType, date}] += float64(n)
	}
	metrics.Tell(metrics.RunsWaiting, runs)
}

// gaugeBudgets tells in metrics what the status of Budgets says.
func gaugeBudgets(budgets []*rqv1.Budget) {
	gpus, hours := map[[3]string]float64{}, map[[3]string]float64{}
	for _, b := range budgets {
		most := map[string]*rqv1.Envelope{}
		for i := range b.Spec.Envelopes {
			most[b.Spec.Envelopes[i].Name] = &b.Spec.Envelopes[i]
		}
		for i := range b.Status.Envelopes {
			s := &b.Status.Envelopes[i]
			e := most[s.Name]
			if e == nil {
				continue // it was taken away
			}
			gaugeGPUs(gpus, b.Name, e, s)
			gaugeHours(hours, b.Name, e, s.GPUHours)
		}
	}
	metrics.Tell(metrics.BudgetGPUs, gpus)
	metrics.Tell(metrics.BudgetGPUHours, hours)
}

func gaugeGPUs(gpus map[[3]string]float64, budget string, e *rqv1.Envelope, s *rqv1.EnvelopeStatus) {
	for use, n := range map[string]int32{"concurrency": e.Concurrency, "owned": s.OwnedGPUs, "family": s.FamilyGPUs,
		"lent": s.LentGPUs, "spare": s.SpareGPUs, "overdraft": s.OverdraftGPUs, "opportunistic": s.OpportunisticGPUs,
		"headroom": s.HeadroomGPUs} {
		gpus[[3]string{budget, e.Name, use}] = float64(n)
	}
}

func gaugeHours(hours map[[3]string]float64, budget string, e *rqv1.Envelope, s *rqv1.GPUHours) {
	if e.MaxGPUHours != nil {
		hours[[3]string{budget, e.Name, "max"}] = float64(*e.MaxGPUHours)
	}
	if s == nil {
		return
	}
	for kind, text := range map[string]string{"spent": s.Spent, "promised": s.Promised, "left": s.Left,
		"hourly": s.Hourly} {
		if n, err := strconv.ParseFloat(text, 64); err == nil { // what is not there is not told
			hours[[3]string{budget, e.Name, kind}] = n
		}
	}
	lost := 0.0
	for i := range s.Lost {
		if n, err := strconv.ParseFloat(s.Lost[i].GPUHours, 64); err == nil {
			lost += n
		}
	}
	hours[[3]string{budget, e.Name, "lost"}] = lost
}
