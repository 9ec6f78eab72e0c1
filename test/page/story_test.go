package page

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// holds is a script that says whether a Run holds GPUs of a node in some way.
func holds(node, use, run string) string {
	return `store.tables.nodes.get("` + node + `")?.spans.some((s) => s.use === "` + use + `" && s.run === "` + run + `")`
}

// bars says whether the view of time has read what it shows.
const bars = `Number(document.querySelector("[data-bars]")?.dataset.bars) > 0`

// usable are the nodes of the sample fleet that Runs may use: one has no label of its domain.
const usable = `[...store.tables.nodes.values()].filter((n) => n.name !== "t4-1")`

// TestPage follows a fleet through a page: Runs start, a node is lost, room is made by a lottery, and the API server
// goes away and comes back.
func TestPage(t *testing.T) {
	c := newCluster(t)
	c.kubectl("apply -f manifests/samples/namespaces.yaml -f manifests/samples/budgets.yaml")
	c.kubectl("apply -f manifests/samples/teams.yaml")
	metrics := newPrometheus(t, c)
	p := open(t, dashboard(t, c.env()), 1280, 800)
	p.until("seventeen nodes", "globalThis.store?.tables.nodes.size === 17", 20*time.Second)

	c.kubectl("runs submit -f manifests/samples/reservation/1-tenants.yaml")
	c.kubectl("wait -n mm run.rq/eval-8 --for=jsonpath={.status.phase}=Running --timeout=1m")
	p.until("the cells of a Run that has started", `[...store.tables.nodes.values()].some((n) => n.spans.some((s) =>
		s.use === "active" && s.run === "mm/eval-8"))`, 2*time.Second)
	c.kubectl("wait -n aud run.rq/probe-8 --for=jsonpath={.status.phase}=Running --timeout=1m")
	c.kubectl("runs submit -f manifests/samples/reservation/2-base-96.yaml")
	c.kubectl("wait -n rai run.rq/base-96 --for=jsonpath={.status.phase}=Running --timeout=1m")
	p.until("a full fleet", usable+`.every((n) => n.spans.every((s) => s.use !== "free"))`,
		10*time.Second)
	seeLottery(t, c, p)
	seeLoss(c, p)
	seeTheSame(c, p)
	seeKeys(t, p)
	seeViews(t, c, p)
	seeTables(t, c, p)
	p.silent()
	seePanels(t, metrics)
	seeAway(c, p)
	seeLittle(t, c)
}

// seeLottery has a Run wait: its date, its place and the odds are shown, then the draw, and that it is valid.
func seeLottery(t *testing.T, c *cluster, p *tab) {
	c.kubectl("runs submit -f manifests/samples/reservation/3-vision-16.yaml")
	p.eval(`location.hash = "#waiting/rai/vision-16"`, nil)
	p.says("Starts:")
	p.says("Run fair lottery")
	p.says("May be cut for it")
	p.until("the odds", `[...document.querySelectorAll("aside td")].some((cell) => cell.textContent === "25 %")`,
		20*time.Second)
	p.until("a countdown", `/\(in \d+s\)/.test(document.querySelector("aside").innerText)`, 10*time.Second)
	p.keep("waiting")
	p.press("t")
	p.until("what is missing, in a table", `(`+cell("rai/vision-16", "GPUs missing")+`) === "`+
		c.kubectl("get reservation -n rai vision-16-r0 -o jsonpath={.status.forecast.deficitGPUs}")+`"`, 5*time.Second)
	p.keep("table-of-waiting")
	p.press("t")
	p.eval(`location.hash = "#fleet"`, nil)
	p.until("who is at risk", `[...store.tables.runs.values()].some((r) => r.risks?.length > 0)`, 10*time.Second)
	p.keep("fleet")
	p.eval(`location.hash = "#lottery/rai/vision-16-r0"`, nil)
	p.says("This record is not drawn yet")
	p.until("the draw", `document.body.innerText.includes("This record is valid")`, 90*time.Second)
	p.keep("lottery")
	said := c.kubectl("runs explain --verify vision-16-r0 -n rai")
	if !strings.Contains(said, "VERDICT    valid") {
		t.Errorf("the command line says otherwise: %s", said)
	}
	p.eval(`location.hash = "#time"`, nil)
	p.until("bars", bars, 10*time.Second)
	p.keep("time")
	p.eval(`location.hash = "#money"`, nil)
	p.says("org:ai:rai")
	p.says("rai/west-h100")
	p.keep("money")
	p.eval(`location.hash = "#fleet"`, nil)
}

// seeLoss loses a node under a Run: its rank goes elsewhere, and the node is crossed out.
func seeLoss(c *cluster, p *tab) {
	c.kubectl("delete run.rq -n mm --all")
	c.kubectl("delete run.rq -n aud --all")
	p.until("free GPUs", usable+`.some((n) => n.spans.some((s) => s.use === "free"))`,
		20*time.Second)
	const of = `[...store.tables.nodes.values()].find((n) => n.spans.some((s) => s.run === "rai/vision-16"))`
	p.until("a node of the Run", of, 20*time.Second)
	var node string
	p.eval(of+`.name`, &node)
	c.kubectl("taint node " + node + " node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
	p.until("that the node is lost", `store.tables.nodes.get("`+node+`").state === "Lost"`, 10*time.Second)
	p.until("that its rank is elsewhere", `!(`+holds(node, "active", "rai/vision-16")+`) &&
		[...store.tables.nodes.values()].reduce((n, node) => n + node.spans.reduce((m, s) =>
			m + (s.run === "rai/vision-16" && s.use === "active" ? s.gpus : 0), 0), 0) === 16`, 20*time.Second)
	p.eval(`location.hash = "#fleet/`+node+`"`, nil)
	p.says("Lost: OutOfService")
	p.keep("loss")
}

// seeTheSame compares the page with what the command line says of the fleet, GPU by GPU.
func seeTheSame(c *cluster, p *tab) {
	said := c.kubectl("runs fleet -o json")
	p.until("what the command line says", `(() => {
		const spans = (n) => n.spans.map((s) => [s.use, s.run, s.tenant, s.gpus]);
		const of = (nodes) => JSON.stringify(nodes.map((n) => [n.name, n.state, n.for, spans(n)])
			.sort((a, b) => a[0].localeCompare(b[0])));
		return of([...store.tables.nodes.values()]) === of((`+said+`).nodes);
	})()`, 5*time.Second)
	p.eval(`location.hash = "#fleet"`, nil)
	p.until("as many free GPUs", `document.querySelector(".tools").innerText.includes(", " + (`+said+`).domains
		.reduce((n, domain) => n + domain.free, 0) + " free")`, 5*time.Second)
}

// seeKeys goes through all views with keys alone.
func seeKeys(t *testing.T, p *tab) {
	for i, view := range []string{"fleet", "time", "money", "waiting", "lottery"} {
		p.press(string(rune('1' + i)))
		p.until("the view "+view, `document.querySelector("main").className === "`+view+`"`, 5*time.Second)
	}
	p.press("1", "t")
	p.until("a table", `document.querySelectorAll("main tbody tr").length === 17`, 5*time.Second)
	p.press("t", "/")
	p.until("the filter's cursor", `document.activeElement.type === "search"`, 5*time.Second)
	p.press("v", "i", "s", "i", "o", "n")
	p.until("a filter", `document.querySelector("input[type=search]").value === "vision" &&
		location.hash.includes("filter=vision")`, 5*time.Second)
	p.eval(`history.replaceState(null, "", "#fleet"); dispatchEvent(new Event("hashchange"));
		document.activeElement.blur()`, nil)
	p.until("all nodes", `document.querySelector(".tools").innerText.includes("17 nodes")`, 5*time.Second)
	p.press(kb.ArrowRight, kb.ArrowRight)
	p.until("a node that is chosen", `document.querySelector("aside h2")?.textContent === "c1"`, 5*time.Second)
	p.press("?")
	p.says("go to a view")
	p.press(kb.Escape, kb.Escape)
	p.until("nothing chosen", `!document.querySelector("aside") && !document.querySelector("[role=dialog]")`,
		5*time.Second)
	var unnamed int
	p.eval(`[...document.querySelectorAll("button, a, input")].filter((e) => !(e.textContent.trim() ||
		e.getAttribute("aria-label") || e.labels?.length)).length`, &unnamed)
	if unnamed > 0 {
		t.Errorf("%d things that can be pressed have no name", unnamed)
	}
}

// seeViews looks at all views in the light and in the dark, on a wide page and on a narrow one, with something chosen:
// nothing is wider than the page, no two words lie over each other, and the commands that are shown do something.
func seeViews(t *testing.T, c *cluster, p *tab) {
	commands := map[string]bool{}
	for _, scheme := range []string{"light", "dark"} {
		p.prefers(scheme)
		back := map[string]string{"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"}[scheme]
		p.until("a "+scheme+" page", `getComputedStyle(document.body).backgroundColor === "`+back+`"`, 5*time.Second)
		for width, name := range map[int64]string{1280: scheme, 480: scheme + "-narrow"} {
			p.do(chromedp.EmulateViewport(width, 800))
			for view, address := range map[string]string{"fleet": "fleet/c2", "time": "time", "money": "money",
				"waiting": "waiting/rai/vision-16", "lottery": "lottery/rai/vision-16-r0"} {
				p.eval(`location.hash = "#`+address+`"`, nil)
				p.until("the view "+view, `document.querySelector("main").className === "`+view+`"`, 5*time.Second)
				switch view {
				case "time":
					p.until("bars", bars, 10*time.Second)
				case "money":
					p.says("rai/west-h100")
				case "lottery":
					p.says("This record is valid")
				}
				var odd []string
				p.eval(crowded, &odd)
				for _, what := range odd {
					t.Errorf("%s, %s, %d pixels wide: %s", view, scheme, width, what)
				}
				p.keep(name + "-" + view)
				var shown []string
				p.eval(`[...document.querySelectorAll(".command code")].map((e) => e.textContent)`, &shown)
				for _, command := range shown {
					commands[command] = true
				}
			}
		}
	}
	if len(commands) < 7 {
		t.Errorf("the page shows few commands: %v", commands)
	}
	for command := range commands {
		words, _, _ := strings.Cut(strings.TrimPrefix(command, "kubectl "), " > ")
		c.kubectl(words)
	}
	p.do(chromedp.EmulateViewport(1280, 800))
	p.prefers("light")
}

// crowded lists what reaches out of the page, and words that lie over others.
const crowded = `(() => {
	const found = [];
	const words = [...document.querySelectorAll("body *")].filter((e) => e.checkVisibility() &&
		!e.closest(".tip, .help, thead") && [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()));
	const seen = [];
	for (const e of words) {
		const text = document.createRange();
		text.selectNodeContents(e);
		const box = text.getBoundingClientRect();
		const scrolls = e.closest(".scroll, aside, .command code, .picture");
		const area = scrolls?.getBoundingClientRect();
		if (area && (box.bottom <= area.top + 1 || box.top >= area.bottom - 1)) {
			continue; // scrolled away
		}
		if (box.right > innerWidth + 1 || area && box.right > area.right + 1) {
			found.push(e.tagName + " is cut off: " + e.textContent.trim().slice(0, 60));
		}
		for (const [other, at] of seen) {
			if (!other.contains(e) && !e.contains(other) && box.left < at.right - 2 && at.left < box.right - 2 &&
				box.top < at.bottom - 4 && at.top < box.bottom - 4 &&
				other.closest("aside, .scroll, header") === e.closest("aside, .scroll, header")) {
				found.push("over each other: " + e.textContent.trim().slice(0, 40) + " | " + other.textContent.trim().slice(0, 40));
			}
		}
		seen.push([e, box]);
	}
	if (document.documentElement.scrollWidth > innerWidth + 1) {
		found.push("the page is " + document.documentElement.scrollWidth + " wide");
	}
	return found;
})()`

// seeAway ends the API server: the page says so, and goes on when it is back.
func seeAway(c *cluster, p *tab) {
	c.kill("kube-apiserver")
	p.says("The API server has not answered")
	p.keep("away")
	c.up()
	p.until("that it is back", `!document.body.innerText.includes("The API server has not answered")`, time.Minute)
	c.kubectl("delete run.rq -n rai vision-16")
	p.until("what has changed since", `!store.tables.runs.has("rai/vision-16")`, 20*time.Second)
}

// seeLittle opens a page for a researcher who may read one namespace.
func seeLittle(t *testing.T, c *cluster) {
	p := open(t, dashboard(t, c.env(), "-n", "mm", "--as", "ann", "--as-group", "mm", "--as-group",
		"system:authenticated"), 1280, 800)
	p.says("Some things may not be read with your rights")
	p.until("no Run of others", `globalThis.store?.version > 0 &&
		[...store.tables.runs.values()].every((r) => r.namespace === "mm")`, 20*time.Second)
	p.press("3")
	p.says("mm/east-h100")
	p.keep("little")
	p.silent()
}
