package metrics_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/component-base/metrics/legacyregistry"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
)

// declared is a metric as the source has it.
type declared struct {
	variable, name, labels string
	registered             bool
}

// inSource returns the metrics of the package, by the variables that they are in.
func inSource(t *testing.T) map[string]*declared {
	t.Helper()
	out := map[string]*declared{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var registered []string
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				if call, ok := n.Values, len(n.Values) == 1; ok {
					if m := metricOf(call[0]); m != nil {
						m.variable = n.Names[0].Name
						out[m.variable] = m
					}
				}
			case *ast.CompositeLit:
				if list, ok := n.Type.(*ast.ArrayType); ok && selected(list.Elt) == "Registerable" {
					for _, e := range n.Elts {
						registered = append(registered, e.(*ast.Ident).Name)
					}
				}
			}
			return true
		})
	}
	for _, name := range registered {
		if out[name] == nil {
			t.Fatalf("%s is registered and not declared", name)
		}
		out[name].registered = true
	}
	return out
}

// metricOf takes the call that makes a metric apart; nil when it makes none.
func metricOf(e ast.Expr) *declared {
	call, ok := e.(*ast.CallExpr)
	if !ok || !strings.HasPrefix(selected(call.Fun), "New") || len(call.Args) == 0 {
		return nil
	}
	var m declared
	for _, arg := range call.Args {
		ast.Inspect(arg, func(n ast.Node) bool {
			if pair, ok := n.(*ast.KeyValueExpr); ok && fmt.Sprint(pair.Key) == "Name" {
				m.name, _ = strconv.Unquote(pair.Value.(*ast.BasicLit).Value)
			}
			return true
		})
	}
	if list, ok := call.Args[len(call.Args)-1].(*ast.CompositeLit); ok && len(call.Args) == 2 {
		var labels []string
		for _, e := range list.Elts {
			label, _ := strconv.Unquote(e.(*ast.BasicLit).Value)
			labels = append(labels, label)
		}
		m.labels = "{" + strings.Join(labels, ",") + "}"
	}
	return &m
}

func selected(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		return s.Sel.Name
	}
	return ""
}

// Whoever runs a fleet finds each metric, with its labels, in the list of docs/operators.md, and finds nothing there
// that the scheduler does not serve.
func TestMetricsAreListed(t *testing.T) {
	text, err := os.ReadFile("../../docs/operators.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed, served []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(jobtree_[a-z_]+(?:\\{[a-z_,]+\\})?)` \\|").FindAllSubmatch(text,
		-1) {
		listed = append(listed, string(row[1]))
	}
	for _, m := range inSource(t) {
		if !m.registered {
			t.Errorf("%s is declared and not registered: it is never served", m.variable)
		}
		served = append(served, "jobtree_"+m.name+m.labels)
	}
	slices.Sort(listed)
	slices.Sort(served)
	if diff := cmp.Diff(served, listed); diff != "" {
		t.Errorf("docs/operators.md lists other metrics (-served +listed):\n%s", diff)
	}
}

// A metric that nobody writes shows a 0 that means nothing.
func TestMetricsAreWritten(t *testing.T) {
	unwritten := inSource(t)
	for _, root := range []string{"../../pkg", "../../cmd"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, used := range regexp.MustCompile(`\bmetrics\.([A-Z]\w+)`).FindAllSubmatch(text, -1) {
				delete(unwritten, string(used[1]))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range unwritten {
		t.Errorf("nobody writes %s", name)
	}
}

// A process that composes itself twice, as tests do, registers the same metrics; what is counted is served under its
// name, with kube-scheduler's own.
func TestRegisteredTwice(t *testing.T) {
	metrics.Register()
	metrics.Register()
	metrics.Cuts.Reset()
	metrics.Cuts.WithLabelValues("Lottery").Inc()
	metrics.NodesHeldBack.Set(3)
	metrics.CutsInVain.WithLabelValues(string(rqv1.CanceledCalledOff)).Inc()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got, help := map[string]float64{}, map[string]string{}
	for _, f := range families {
		help[f.GetName()] = f.GetHelp()
		for _, m := range f.GetMetric() {
			got[f.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	if got["jobtree_cuts_total"] != 1 || got["jobtree_nodes_held_back"] != 3 {
		t.Errorf("served: %v cuts, %v nodes held back", got["jobtree_cuts_total"], got["jobtree_nodes_held_back"])
	}
	for _, cause := range []rqv1.CancelCause{rqv1.CanceledVictimStayed, rqv1.CanceledNodesRejected,
		rqv1.CanceledRoomTaken, rqv1.CanceledCalledOff, rqv1.CanceledSuspended} {
		if text := help["jobtree_cuts_in_vain_total"]; !strings.Contains(text, string(cause)) {
			t.Errorf("the cause %s is not among those that are told: %s", cause, text)
		}
	}
}
