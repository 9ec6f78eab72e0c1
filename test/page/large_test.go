package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// A fleet as large as there are: 5,000 nodes of 8 GPUs, and 2,000 Runs of which each holds two or three nodes.
const (
	largeNodes = 5000
	largeRuns  = 2000
)

type object = map[string]any

func meta(kind, namespace, name string) object {
	m := object{"name": name, "uid": namespace + "/" + name, "resourceVersion": "1",
		"creationTimestamp": "2026-03-01T12:00:00Z"}
	if namespace != "" {
		m["namespace"] = namespace
	}
	return object{"kind": kind, "metadata": m}
}

func largeNode(i int) object {
	n := meta("Node", "", fmt.Sprintf("node-%04d", i))
	n["metadata"].(object)["labels"] = object{"region": "r", "cluster": fmt.Sprintf("c%d", i/1000),
		"fabric.domain": fmt.Sprintf("d%03d", i/125), "gpu.flavor": "H100"}
	gpus := object{"nvidia.com/gpu": "8"}
	n["status"] = object{"capacity": gpus, "allocatable": gpus,
		"conditions": []object{{"type": "Ready", "status": "True"}}}
	return n
}

func largeRun(i int) object {
	r := meta("Run", "ns", fmt.Sprintf("run-%04d", i))
	r["spec"] = object{"owner": fmt.Sprintf("org:team-%d", i%12), "resources": object{"gpuType": "H100", "totalGPUs": 16}}
	r["status"] = object{"phase": "Running", "message": "bound 16 GPUs", "width": object{"allocated": 16, "desired": 16}}
	return r
}

func largeLease(node, run int) object {
	l := meta("Lease", "ns", fmt.Sprintf("lease-%04d", node))
	l["metadata"].(object)["labels"] = object{"rq.davidlangworthy.io/pod-uid": fmt.Sprint(node)}
	owner := fmt.Sprintf("org:team-%d", run%12)
	of := object{"namespace": "ns", "name": fmt.Sprintf("run-%04d", run), "uid": "u"}
	l["spec"] = object{"owner": owner, "runRef": of,
		"start": "2026-03-01T12:00:00.000000Z", "payer": object{"budget": "b", "owner": owner}, "reason": "Start",
		"slice": object{"role": "Active", "nodes": []object{{"name": fmt.Sprintf("node-%04d", node), "gpus": 8}}}}
	return l
}

// largeServer is an API server that has the large fleet, and sends changes of GPU leases when it is told to.
type largeServer struct {
	lists   map[string][]object
	mu      sync.Mutex
	watches []chan object // of GPU leases
}

func (s *largeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(r.URL.Path, "/")
	resource := parts[len(parts)-1]
	items, known := s.lists[resource]
	switch {
	case !known:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"details":{}}`)
	case r.URL.Query().Get("watch") != "":
		s.watch(w, r, resource)
	default:
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("limit") == "1" {
			items = nil
		}
		kind := strings.ToUpper(resource[:1]) + strings.TrimSuffix(resource[1:], "s") + "List"
		json.NewEncoder(w).Encode(object{"kind": kind, "apiVersion": strings.Join(parts[2:len(parts)-1], "/"),
			"metadata": object{"resourceVersion": "1"}, "items": items})
	}
}

func (s *largeServer) watch(w http.ResponseWriter, r *http.Request, resource string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	changes := make(chan object, largeNodes)
	if resource == "leases" {
		s.mu.Lock()
		s.watches = append(s.watches, changes)
		s.mu.Unlock()
	}
	for {
		select {
		case <-r.Context().Done():
			return
		case change := <-changes:
			json.NewEncoder(w).Encode(object{"type": "MODIFIED", "object": change})
			w.(http.Flusher).Flush()
		}
	}
}

func (s *largeServer) change(l object) {
	l["apiVersion"] = "rq.davidlangworthy.io/v1"
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.watches {
		w <- l
	}
}

func largeFleet() *largeServer {
	s := &largeServer{lists: map[string][]object{"budgets": {}, "reservations": {}, "pods": {}}}
	for i := range largeNodes {
		s.lists["nodes"] = append(s.lists["nodes"], largeNode(i))
		s.lists["leases"] = append(s.lists["leases"], largeLease(i, i%largeRuns))
	}
	for i := range largeRuns {
		s.lists["runs"] = append(s.lists["runs"], largeRun(i))
	}
	return s
}

// env is that of a command that asks this server.
func (s *largeServer) env(t *testing.T) []string {
	api := httptest.NewServer(s)
	t.Cleanup(func() {
		api.CloseClientConnections()
		api.Close()
	})
	config := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":%q}}],`+
		`"contexts":[{"name":"c","context":{"cluster":"c","user":"","namespace":"ns"}}],"current-context":"c"}`, api.URL)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return append(os.Environ(), "KUBECONFIG="+config)
}

// TestALargeFleet opens a page of 40,000 GPUs: how long until the first picture, how long an update keeps the page
// busy, and how much memory it takes.
func TestALargeFleet(t *testing.T) {
	server := largeFleet()
	address := dashboard(t, server.env(t))
	warm := open(t, address, 1600, 1000) // the browser has started, and the server has read the cluster
	warm.until("the fleet", fmt.Sprintf("globalThis.store?.tables.nodes.size === %d", largeNodes), time.Minute)
	warm.do(chromedp.Reload())
	warm.until("the first picture", `globalThis.lastPaint > 0`, 20*time.Second)
	var first, used, longest float64
	warm.eval(`performance.now()`, &first)
	warm.keep("large")
	warm.eval(`globalThis.busy = [];
		new PerformanceObserver((list) => busy.push(...list.getEntries().map((e) => e.duration)))
			.observe({ entryTypes: ["longtask"] }); 0`, nil)
	for i := range 8 {
		for node := i * 100; node < i*100+20; node++ {
			server.change(largeLease(node, (node+1)%largeRuns))
		}
		last := i*100 + 19
		run := fmt.Sprintf("ns/run-%04d", (last+1)%largeRuns)
		warm.until("an update", holds(fmt.Sprintf("node-%04d", last), "active", run), 20*time.Second)
	}
	warm.eval(`new Promise((done) => setTimeout(done, 300)).then(() => Math.max(0, ...busy))`, &longest)
	warm.eval(`performance.memory.usedJSHeapSize / 1e6`, &used)
	t.Logf("first picture %.0f ms, longest task of an update %.0f ms, %.0f MB", first, longest, used)
	if used > 200 {
		t.Errorf("the page uses %.0f MB; 200 are allowed", used)
	}
	if os.Getenv("TIMINGS") != "" && (first > 1500 || longest > 100) {
		t.Errorf("the first picture took %.0f ms (1500 allowed), an update %.0f ms (100 allowed)", first, longest)
	}
	seePast(t, warm)
	warm.silent()
}

// seePast drags through the past of a large fleet: what comes up while the server answers does not queue up there.
func seePast(t *testing.T, p *tab) {
	p.eval(`globalThis.goal = new Date(Math.floor(Date.now() / 1000 - 60) * 1000);
		for (let i = 50; i >= 0; i--) { store.goTo(new Date(goal - i * 1000)); } 0`, nil)
	p.until("the instant that was stopped at", `store.then && Date.parse(store.then.about.at) === goal.getTime()`,
		20*time.Second)
	var asked int
	p.eval(`performance.getEntriesByType("resource").filter((e) => e.name.includes("/api/at")).length`, &asked)
	if asked > 5 {
		t.Errorf("the server was asked %d times", asked)
	}
	p.says("The fleet as GPU leases tell of it at")
	p.eval(`store.goTo(null).then(() => 0)`, nil)
	p.until("the present", `store.then === null && !document.body.innerText.includes("back to now")`, 5*time.Second)
}
