package texts

// concern is what the texts of some packages are about.
type concern struct {
	title    string
	packages []string // paths from the root; one that ends in /... has those below it too
}

// concerns has every package whose texts people can meet, in the order in which they are read.
var concerns = []concern{
	{"Why a Run waits, and what would help", []string{"pkg/plan", "pkg/budget", "pkg/topology", "pkg/forecast",
		"pkg/queueorder", "pkg/book", "pkg/plugins", "pkg/published"}},
	{"What conditions, events and Reservations say", []string{"pkg/lifecycle", "pkg/controllers", "pkg/reconcile",
		"pkg/risk", "pkg/news", "pkg/rank", "pkg/apis/..."}},
	{"Failures, maintenance and brakes", []string{"pkg/ending", "pkg/restart", "pkg/suspicion", "pkg/nodeloss",
		"pkg/outage", "pkg/brake"}},
	{"Pods that no Run made", []string{"pkg/group"}},
	{"Draws and audits", []string{"pkg/resolver", "pkg/audit"}},
	{"Configuration, metrics and alerts", []string{"pkg/config", "cmd/scheduler", "pkg/fence", "pkg/metrics",
		"pkg/monitoring", "pkg/dump"}},
	{"Commands", []string{"cmd/kubectl-runs/...", "pkg/cli/...", "pkg/picture"}},
}

// mute has the packages that say nothing to people, or only to those who work on them.
var mute = []string{"pkg/sim", "pkg/lane", "pkg/cli/clitest"}
