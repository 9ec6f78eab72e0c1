package main

import (
	"regexp"
	"time"

	"github.com/davidlangworthy/jobtree/test/perf/backlog"
	"github.com/davidlangworthy/jobtree/test/perf/commands"
	"github.com/davidlangworthy/jobtree/test/perf/history"
	"github.com/davidlangworthy/jobtree/test/perf/rebind"
)

// The schedulers that are compared.
const (
	stock   = "stock"
	jobtree = "jobtree"
	// foreign is jobtree with pods that no Run has made.
	foreign = "foreign"
)

// workload is one row or pair of rows of the table: a case of test/perf/workloads and the schedulers that run it.
type workload struct {
	name       string
	schedulers []string
}

// size is what one value of -size measures.
type size struct {
	workloads []workload
	// plannerTime is the -benchtime of the planner's Go benchmarks.
	plannerTime string
	rebind      rebind.Size
	crowd       crowd
	backlog     backlog.Size
	history     history.Size
	commands    commands.Size
}

// only returns the workloads that a filter selects.
func (s size) only(selected *regexp.Regexp) []workload {
	var out []workload
	for _, w := range s.workloads {
		if selected.MatchString(w.name) {
			out = append(out, w)
		}
	}
	return out
}

var (
	both = []string{stock, jobtree}
	all  = []string{stock, jobtree, foreign}
)

// singles is the case of single pods: the default scheduler's are the bar for our pod rate, ours are Runs of one pod.
const singles = "Pods/"

var sizes = map[string]size{
	"full": {
		workloads: []workload{
			{singles + "3000x1", both},
			{"TopologyGangs/750x4", all},
			{"TopologyGangs/3x1000", both},
			{"Gangs/1000x3", both},
		},
		plannerTime: "1s",
		rebind: rebind.Size{
			Nodes: 1008, WideRuns: 150, NarrowRuns: 50,
			Singles: 120, Storms: 20, StormNodes: 18, Domains: 10, Signs: 30, Silences: 20,
		},
		crowd: crowd{
			fleet: rebind.Size{Nodes: 1008, WideRuns: 168, NarrowRuns: 50, Singles: 40, Signs: 20},
			waits: rebind.Crowd{Runs: 1000, Pods: 64, Starts: 40, Steps: 20},
		},
		backlog:  backlog.Size{Cohorts: 5, QueuesPerCohort: 6, Share: 1, Target: 200 * time.Second},
		history:  history.Size{Nodes: 1008, Gangs: 750, PodsPerGang: 4, Leases: 100000, Runs: 100000},
		commands: commands.Size{Runs: 1000, Repeats: 20},
	},
	"tiny": {
		workloads: []workload{
			{singles + "10x1", both},
			{"TopologyGangs/3x4", all},
			{"TopologyGangs/2x10", both},
			{"Gangs/3x3", both},
		},
		plannerTime: "1x",
		rebind: rebind.Size{
			Nodes: 54, WideRuns: 6, NarrowRuns: 2,
			Singles: 4, Storms: 2, StormNodes: 6, Domains: 1, Signs: 1, Silences: 2,
		},
		crowd: crowd{
			fleet: rebind.Size{Nodes: 54, WideRuns: 9, NarrowRuns: 2, Singles: 2, Signs: 1},
			waits: rebind.Crowd{Runs: 40, Pods: 8, Starts: 2, Steps: 2},
		},
		backlog:  backlog.Size{Cohorts: 1, QueuesPerCohort: 2, Share: 50},
		history:  history.Size{Nodes: 18, Gangs: 6, PodsPerGang: 4, Leases: 200, Runs: 200},
		commands: commands.Size{Runs: 32, Repeats: 1},
	},
}
