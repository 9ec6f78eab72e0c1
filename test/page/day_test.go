package page

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// frame is a script that gives the page what a server sends while Runs come and go: of each number twenty Runs, on
// nodes and with Reservations of theirs.
const frame = `globalThis.frame = (n) => {
	const runs = {}, reservations = {}, nodes = {};
	for (let i = 0; i < 20; i++) {
		const name = "run-" + n + "-" + i, key = "day/" + name;
		runs[key] = { key, namespace: "day", name, owner: "day:" + i, phase: "Pending", allocated: 0, desired: 8,
			message: "short by " + n, created: "2026-03-01T12:00:00Z", waits: { message: "no room ".repeat(20) } };
		reservations[key + "-r0"] = { key: key + "-r0", run: key, state: "Pending", earliestStart: "2026-03-01T12:00:00Z" };
		const of = [...store.tables.nodes.keys()][i];
		nodes[of] = { ...store.tables.nodes.get(of), spans: [{ use: "active", run: key, gpus: 8 }] };
	}
	const gone = (rows) => [...rows.keys()].filter((key) => key.startsWith("day/"));
	store.apply({ ...store.about, tables: { nodes: { set: nodes },
		runs: { set: runs, gone: gone(store.tables.runs) },
		reservations: { set: reservations, gone: gone(store.tables.reservations) } } });
	store.tell();
}; 0`

// seeManyFrames leaves the page open for as many frames as come in a busy quarter of an hour, in each view: it keeps
// what is there now, and nothing of what was. What is sent meanwhile is that of the test alone.
func seeManyFrames(t *testing.T, p *tab) {
	p.eval(`store.leave(); 0`, nil)
	p.eval(frame, nil)
	feed := func(from, to int) float64 {
		for i, view := range []string{"fleet", "time", "money", "waiting", "lottery", "waiting?table"} {
			p.eval(`location.hash = "#`+view+`"`, nil)
			name, _, _ := strings.Cut(view, "?")
			p.until("the view "+view, `document.querySelector("main").className === "`+name+`"`, 5*time.Second)
			p.eval(`(async (from, to) => { for (let n = from; n < to; n++) {
				frame(n); if (n % 10 === 0) { await new Promise((done) => requestAnimationFrame(done)); } }
				})(`+strconv.Itoa(from+i*(to-from)/6)+`, `+strconv.Itoa(from+(i+1)*(to-from)/6)+`).then(() => 0)`, nil)
		}
		return p.memory()
	}
	before := feed(0, 300)
	after := feed(300, 3900)
	t.Logf("%.1f MB after 300 frames, %.1f MB after 3,900", before, after)
	if after > before+5 {
		t.Errorf("the page keeps %.1f MB after 300 frames, and %.1f MB after 3,900", before, after)
	}
	p.eval(`store.join(); location.hash = "#fleet"; 0`, nil)
	p.until("what the server has", `store.tables.runs.size === 21 && store.tables.reservations.size === 0`, 20*time.Second)
}
