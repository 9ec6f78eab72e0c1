package monitoring_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/davidlangworthy/jobtree/pkg/metrics"
	"github.com/davidlangworthy/jobtree/pkg/monitoring"
)

// served returns the metrics that docs/operators.md lists, with their labels; a test of pkg/metrics holds that list
// against what is served.
func served(t *testing.T) map[string][]string {
	text, err := os.ReadFile("../../docs/operators.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(jobtree_[a-z_]+)(?:\\{([a-z,_]+)\\})?` \\|").FindAllStringSubmatch(
		string(text), -1) {
		out[row[1]] = strings.Split(row[2], ",")
	}
	return out
}

var (
	metric  = regexp.MustCompile(`(jobtree_[a-z_]+)(?:\{([^}]*)\})?`)
	matcher = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)`)
	grouped = regexp.MustCompile(`by \(([^)]*)\)`)
)

// named checks that an expression names only metrics that are served, and labels that one of them has.
func named(t *testing.T, where, expr string, served map[string][]string) {
	labels := []string{"le"}
	for _, m := range metric.FindAllStringSubmatch(expr, -1) {
		name := strings.TrimSuffix(m[1], "_bucket")
		has, known := served[name]
		if !known {
			t.Errorf("%s: there is no metric %s", where, m[1])
		}
		labels = append(labels, has...)
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			if l[1] != "le" && !slices.Contains(has, l[1]) {
				t.Errorf("%s: %s has no label %s", where, name, l[1])
			}
		}
	}
	for _, by := range grouped.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(by[1], ", ") {
			if !slices.Contains(labels, label) {
				t.Errorf("%s: no metric in it has a label %s: %s", where, label, expr)
			}
		}
	}
}

// TestWhatIsNamedIsServed holds alerts and dashboards against the list of metrics.
func TestWhatIsNamedIsServed(t *testing.T) {
	served := served(t)
	for _, a := range monitoring.Alerts {
		named(t, a.Name, a.Expr, served)
	}
	for _, d := range monitoring.Dashboards {
		for _, row := range d.Rows {
			for _, p := range row.Panels {
				for _, q := range p.Queries {
					named(t, d.Title+": "+p.Title, q.Expr, served)
				}
			}
		}
	}
}

// TestIncreasesBeginAtZero: what an alert sees grow is served before it has grown, or the first time would not be seen.
func TestIncreasesBeginAtZero(t *testing.T) {
	metrics.Register()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]int{}
	for _, f := range families {
		series[f.GetName()] = len(f.GetMetric())
	}
	for _, a := range monitoring.Alerts {
		for _, m := range regexp.MustCompile(`(?:increase|rate)\((jobtree_[a-z_]+)`).FindAllStringSubmatch(a.Expr, -1) {
			if name := strings.TrimSuffix(m[1], "_bucket"); series[name] == 0 {
				t.Errorf("%s: %s is not served before it happens", a.Name, name)
			}
		}
	}
	if n := series["jobtree_nodes_lost_total"]; n != 5 {
		t.Errorf("losses begin at zero for %d kinds of evidence, want 5", n)
	}
}

// TestEveryAlertHasARunbook looks for the section that each alert names.
func TestEveryAlertHasARunbook(t *testing.T) {
	text, err := os.ReadFile("../../docs/operators.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
		anchor := strings.ToLower(strings.ReplaceAll(heading[1], " ", "-"))
		sections[regexp.MustCompile(`[^a-z0-9-]`).ReplaceAllString(anchor, "")] = true
	}
	for _, a := range monitoring.Alerts {
		if !sections[a.Runbook] {
			t.Errorf("%s: docs/operators.md has no section %s", a.Name, a.Runbook)
		}
	}
}

// TestEveryAlertHasACase has each alert be tested by promtool.
func TestEveryAlertHasACase(t *testing.T) {
	cases := map[string]bool{}
	for _, c := range monitoring.Cases {
		cases[c.Alert] = true
	}
	for _, a := range monitoring.Alerts {
		if !cases[a.Name] {
			t.Errorf("nothing shows that %s fires", a.Name)
		}
	}
}
