package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/fleet"
	"github.com/davidlangworthy/jobtree/pkg/cli/world"
	"github.com/davidlangworthy/jobtree/pkg/picture"
)

// facts are what a page shows of a fleet.
type facts struct {
	nodes        []picture.Node
	runs         map[string]*runRow
	reservations []*reservationRow
}

// factsOf are what a page would show that has just read an API server.
func factsOf(t rapid.TB, server *clitest.Server) facts {
	t.Helper()
	d := over(server)
	c, _, _, err := d.Connect()
	if err != nil {
		t.Fatal(err)
	}
	args, _, err := world.SchedulerArgs(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{}
	for _, kind := range kinds {
		list := kind.list.DeepCopyObject().(client.ObjectList)
		s := &store{Store: cache.NewStore(cache.MetaNamespaceKeyFunc), changed: func() {}}
		err := c.List(context.Background(), list, &client.ListOptions{FieldSelector: kind.fields})
		err = errors.Join(err, meta.EachListItem(list, func(o runtime.Object) error { return s.Add(o) }))
		if err != nil {
			t.Fatal(err)
		}
		w.parts = append(w.parts, &part{kind: kind, sources: []*source{{in: s}}})
	}
	tables := newFrames(w, args, d.Now).tablesAt(w.objects(), d.Now(), true)
	f := facts{nodes: rowsOf[picture.Node](t, tables[tableNodes]), runs: map[string]*runRow{}}
	for _, r := range rowsOf[runRow](t, tables[tableRuns]) {
		f.runs[r.Key] = &r
	}
	for _, r := range rowsOf[reservationRow](t, tables[tableReservations]) {
		f.reservations = append(f.reservations, &r)
	}
	return f
}

// rowsOf reads the rows of a table, in the order of their keys.
func rowsOf[T any](t rapid.TB, table map[string]*row) (out []T) {
	for _, key := range slices.Sorted(maps.Keys(table)) {
		var of T
		if err := json.Unmarshal(table[key].data, &of); err != nil {
			t.Fatal(err)
		}
		out = append(out, of)
	}
	return out
}

// nameOf is what people call a Run, with its namespace.
func (f *facts) nameOf(run string) string {
	if r := f.runs[run]; r != nil {
		return r.Namespace + "/" + r.Name
	}
	return run
}

// promises are the starts to come, in lines.
func (f *facts) promises() (lines []string) {
	for _, r := range f.reservations {
		if r.EndedAt == nil && r.Nodes != nil {
			lines = append(lines, fmt.Sprint(r.Run, " ", r.EarliestStart.UTC(), " ", r.Nodes))
		}
	}
	return lines
}

// TestThePageAgreesWithTheText draws random fleets as text, as data and as the page has them, and compares them GPU by
// GPU, node by node and domain by domain.
func TestThePageAgreesWithTheText(t *testing.T) {
	log.SetLogger(silent)
	rapid.Check(t, func(r *rapid.T) {
		server := clitest.NewServer(t, append(clitest.Fleets().Draw(r, "fleet"), clitest.Published(t, "{}"))...)
		page := factsOf(r, server)
		ask := func(args ...string) clitest.Said {
			said := clitest.Do(t, server, fleet.Command, args...)
			if said.Code != 0 {
				r.Fatalf("fleet %v: %+v", args, said)
			}
			return said
		}
		var data world.Fleet
		if err := json.Unmarshal([]byte(ask("-o", "json").Out), &data); err != nil {
			r.Fatal(err)
		}
		sameData(r, page, data)
		sameText(r, page, ask("--nodes").Out)
		bars := ask("--domains").Out
		for _, d := range data.Domains {
			line := fmt.Sprintf("%d of %d GPUs free", d.Free, d.GPUs)
			if !strings.Contains(bars, line) {
				r.Errorf("the bars do not tell of %+v:\n%s", d, bars)
			}
		}
	})
}

// sameData compares a page with the same as data.
func sameData(t *rapid.T, page facts, data world.Fleet) {
	slices.SortFunc(data.Nodes, func(a, b picture.Node) int { return strings.Compare(a.Name, b.Name) })
	if diff := cmp.Diff(page.nodes, data.Nodes); diff != "" {
		t.Errorf("nodes (-page +data):\n%s", diff)
	}
	var promises []string
	for _, p := range data.Promises {
		promises = append(promises, fmt.Sprint(p.Run, " ", p.At.UTC(), " ", p.Nodes))
	}
	slices.Sort(promises)
	if diff := cmp.Diff(page.promises(), promises); diff != "" {
		t.Errorf("promises (-page +data):\n%s", diff)
	}
	free, held := map[string]int{}, map[string]int{}
	for i := range page.nodes {
		n := &page.nodes[i]
		for _, s := range n.Spans {
			for _, run := range []string{s.Run, s.Tenant} {
				held[run] += s.GPUs
			}
			if s.Use == picture.Free && n.TakesWork() {
				free[fmt.Sprint(n.Domain, n.GPUType)] += s.GPUs
			}
		}
	}
	delete(held, "")
	holds := map[string]int{}
	for _, h := range data.Runs {
		holds[h.Run] = h.GPUs
	}
	if diff := cmp.Diff(held, holds); diff != "" {
		t.Errorf("GPUs by Run (-page +data):\n%s", diff)
	}
	for _, d := range data.Domains {
		if want := free[fmt.Sprint(d.Values, d.GPUType)]; d.Free != want {
			t.Errorf("%d GPUs are free on the page in %v, of type %q, and %d in the data", want, d.Values, d.GPUType, d.Free)
		}
	}
}

// sameText compares a page with the same as text.
func sameText(t *rapid.T, page facts, text string) {
	if len(page.nodes) == 0 {
		if text != "" {
			t.Errorf("there are no nodes with GPUs, and the text shows something:\n%s", text)
		}
		return
	}
	var nodes, shut []string
	for i := range page.nodes {
		nodes = append(nodes, page.nodes[i].Name)
		if !page.nodes[i].TakesWork() {
			shut = append(shut, page.nodes[i].Name)
		}
	}
	cells, named := clitest.CellsOf(text, nodes)
	if diff := cmp.Diff(clitest.CellsOfNodes(page.nodes, page.nameOf, named), cells); diff != "" {
		t.Errorf("cells (-page +text):\n%s\n%s", diff, text)
	}
	for _, name := range shut {
		if !strings.Contains(text, "\n  node "+name+": ") {
			t.Errorf("the text does not say why node %s is not in service:\n%s", name, text)
		}
	}
	for _, r := range page.reservations {
		if r.Nodes != nil && !strings.Contains(text, "\n  "+r.Run+" starts ") {
			t.Errorf("the text does not say when %s starts:\n%s", r.Run, text)
		}
	}
	if got := strings.Count(text, "\n  node "); got != len(shut) {
		t.Errorf("%d nodes take nothing new on the page, and %d in the text:\n%s", len(shut), got, text)
	}
}
