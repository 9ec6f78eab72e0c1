package page

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// hostile is what somebody writes where a page may take it for its own.
const hostile = `<img src=x onerror="document.title='broken in'"><script>document.title='broken in'</script>`

// oddNode is the name of a node, which begins as all others do.
func oddNode(i int) string { return fmt.Sprintf("gke-prod-h100-pool-%04d", i) }

// oddFleet is two hundred nodes and Runs of twenty owners, of which one waits with a message that is hostile.
func oddFleet() *largeServer {
	s := &largeServer{lists: map[string][]object{"budgets": {}, "reservations": {}, "pods": {}}}
	for i := range 200 {
		n := largeNode(i)
		n["metadata"].(object)["name"] = oddNode(i)
		s.lists["nodes"] = append(s.lists["nodes"], n)
	}
	for i := range 20 {
		r := largeRun(i)
		r["spec"].(object)["owner"] = fmt.Sprintf("Org:team-%02d", i)
		s.lists["runs"] = append(s.lists["runs"], r)
		l := largeLease(i, i)
		l["spec"].(object)["slice"] = object{"role": "Active", "nodes": []object{{"name": oddNode(i), "gpus": 8}}}
		s.lists["leases"] = append(s.lists["leases"], l)
	}
	waits := largeRun(20)
	waits["spec"].(object)["owner"] = hostile
	waits["status"] = object{"phase": "Pending", "earliestStart": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
		"message": hostile + " until 2026-07-01T12:00:00Z, or write it as 2026-07-01T12:00:00Z"}
	s.lists["runs"] = append(s.lists["runs"], waits)
	return s
}

// begun opens the page of an odd fleet, and waits for it.
func begun(t *testing.T, env []string) (*tab, *os.Process) {
	t.Helper()
	address, process := begin(t, env)
	p := open(t, address, 1280, 800)
	p.until("the fleet", "globalThis.store?.tables.nodes.size === 200", time.Minute)
	return p, process
}

// TestOddPages opens pages that people, programs and time make of it.
func TestOddPages(t *testing.T) {
	p, process := begun(t, oddFleet().env(t))
	seeOwners(t, p)
	seeOddAddresses(t, p)
	seeOddWords(t, p)
	seeOtherKeys(t, p)
	seeTips(t, p)
	seeFewer(p)
	seeOtherClocks(t, p)
	seeManyFrames(t, p)
	p.silent()
	seeManyTabs(p)
	seeSilence(p, process)
}

// seeOwners finds that twenty owners can be told apart.
func seeOwners(t *testing.T, p *tab) {
	p.until("a legend", `document.querySelectorAll(".legend .swatch").length === 20`, 5*time.Second)
	var kinds int
	p.eval(`new Set([...document.querySelectorAll(".legend .swatch")].map((s) =>
		s.className + s.style.backgroundColor)).size`, &kinds)
	if kinds != 20 {
		t.Errorf("twenty owners look like %d", kinds)
	}
	p.keep("owners")
	var whose string
	p.eval(`import("/colours.js").then(({ Colours }) => { const c = new Colours();
		c.know(new Map([["a/x", { owner: "one" }]])); c.know(new Map([["a/x", { owner: "two" }]]));
		return c.of("a/x") === c.ofOwner("two") ? "two" : "one"; })`, &whose)
	if whose != "two" {
		t.Error("a Run that is made again for another owner keeps the colour of the one before")
	}
}

// seeOddAddresses follows links that are cut off, and that name what is not there.
func seeOddAddresses(t *testing.T, p *tab) {
	for address, says := range map[string]string{
		"#fleet/%E0%A4":                    "There is no such node",
		"#fleet/gone":                      "There is no such node",
		"#waiting/ns/gone;%20rm%20-rf%20~": "There is no such Run",
		"#lottery/ns/gone-r0":              "There is no such Reservation",
		"#nothing":                         "200 nodes",
		"#waiting?filter=%":                "There are no Runs that you may read",
	} {
		p.eval(`location.hash = `+fmt.Sprintf("%q", address), nil)
		p.says(says)
		var commands string
		p.eval(`[...document.querySelectorAll(".command code")].map((e) => e.textContent).join()`, &commands)
		if strings.Contains(commands, "rm") {
			t.Errorf("the page shows a command that somebody has put into a link: %s", commands)
		}
	}
	p.do(chromedp.Navigate(strings.Split(address(p), "#")[0] + "#fleet/%E0%A4"))
	p.do(chromedp.Reload())
	p.says("There is no such node")
	p.press(kb.Escape)
	p.until("nothing chosen", `!document.querySelector("aside")`, 5*time.Second)
}

func address(p *tab) (at string) {
	p.eval("location.href", &at)
	return at
}

// seeOddWords reads words that others have written, with instants by the clock of whoever reads them.
func seeOddWords(t *testing.T, p *tab) {
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetTimezoneOverride,
			emulation.SetTimezoneOverrideParams{TimezoneID: "Europe/Berlin"})
		return err
	}))
	p.do(chromedp.Reload())
	p.until("the fleet", "globalThis.store?.tables.nodes.size === 200", 20*time.Second)
	p.eval(`location.hash = "#waiting/ns/run-0020"`, nil)
	p.says("write it as 2026-07-01T12:00:00Z")
	p.until("an instant in local time", `/until .*(02:00:00 PM|14:00:00) GMT\+2,/.test(document.body.innerText)`,
		5*time.Second)
	p.keep("odd-words")
	var title string
	p.eval("document.title", &title)
	if title != "Waiting and at risk · jobtree" {
		t.Errorf("the page's title is %q", title)
	}
	var winter, later string
	p.eval(`import("/words.js").then(({ at }) => at("2026-01-15T12:00:00Z"))`, &winter)
	p.eval(`import("/words.js").then(({ at }) => at("2031-07-01T12:00:00Z"))`, &later)
	if !strings.HasSuffix(winter, "GMT+1") || !strings.Contains(later, "2031") || !strings.HasSuffix(later, "GMT+2") {
		t.Errorf("winter is %q, a year to come %q", winter, later)
	}
}

// seeOtherKeys presses keys of the browser, those that scroll, and those of a list of keys.
func seeOtherKeys(t *testing.T, p *tab) {
	p.eval(`location.hash = "#fleet"; document.activeElement.blur()`, nil)
	p.says("200 nodes")
	kept := func(what, on, key, with string) {
		t.Helper()
		var taken bool
		p.eval(fmt.Sprintf(`!document.querySelector(%q).dispatchEvent(new KeyboardEvent("keydown",
			{ key: %q, bubbles: true, cancelable: true, %s }))`, on, key, with), &taken)
		if taken {
			t.Errorf("%s is taken from the browser", what)
		}
	}
	kept("the way back", "body", "ArrowLeft", "altKey: true")
	p.press(kb.ArrowRight)
	p.until("a node that is chosen", `document.querySelector("aside h2")?.textContent === "`+oddNode(0)+`"`, 5*time.Second)
	kept("what scrolls", "aside", "ArrowDown", "")
	for range 24 {
		p.press(kb.ArrowDown)
	}
	p.until("a node far below", `(() => { const box = document.querySelector(".picture");
		return document.querySelector("aside h2")?.textContent === "`+oddNode(192)+`" &&
			box.scrollTop + box.clientHeight >= box.scrollHeight - 120; })()`, 5*time.Second)
	p.keep("odd-below")
	p.press("f")
	p.until("a domain that is folded", `document.querySelector("aside h2") &&
		document.querySelector(".extent").clientHeight < 900`, 5*time.Second)
	p.press("f", "t")
	p.until("a table", `document.querySelectorAll("main tbody tr").length === 200`, 5*time.Second)
	kept("what scrolls", ".scroll", "ArrowDown", "")
	p.press("t", kb.Escape, "2")
	p.until("time", `document.querySelector("main").className === "time"`, 5*time.Second)
	kept("the size of letters", "body", "+", "ctrlKey: true")
	p.press("1")
	p.eval(`document.querySelector("[aria-label=Keys]").focus()`, nil)
	p.press("?")
	p.until("the list of keys", `document.activeElement.closest("[role=dialog]")`, 5*time.Second)
	p.press(kb.Escape)
	p.until("the keyboard where it was", `document.activeElement.getAttribute("aria-label") === "Keys" &&
		!document.querySelector("[role=dialog]")`, 5*time.Second)
}

// seeTips points at the last node of a line: what is said of it is on the page.
func seeTips(t *testing.T, p *tab) {
	// The pointer goes from one place to the next, and from the right again, until something is said.
	p.until("what is said of a node", `document.querySelector(".tip") || (() => {
		const canvas = document.querySelector("canvas[role=img]");
		const box = canvas.getBoundingClientRect();
		globalThis.pointer = globalThis.pointer - 6 > box.left ? globalThis.pointer - 6 : box.right - 2;
		canvas.dispatchEvent(new MouseEvent("mousemove", { clientX: pointer, clientY: box.top + 50, bubbles: true }));
		return false; })()`, 20*time.Second)
	var box struct{ Left, Right, Top, Bottom, Width float64 }
	p.eval(`(() => { const { left, right, top, bottom, width } = document.querySelector(".tip").getBoundingClientRect();
		return { Left: left, Right: right, Top: top, Bottom: bottom, Width: width }; })()`, &box)
	if box.Left < 0 || box.Right > 1280 || box.Bottom > 800 || box.Width < 150 {
		t.Errorf("what is said of a node stands at %+v", box)
	}
}

// seeFewer has all nodes be gone after the connection was lost, while a filter is set: the page goes on.
func seeFewer(p *tab) {
	p.eval(`location.hash = "#fleet?filter=pool-00"`, nil)
	p.says("100 nodes")
	p.eval(`globalThis.all = Object.fromEntries(store.tables.nodes); store.fresh = true;
		store.apply({ ...store.about, tables: {} }); store.tell(); 0`, nil)
	p.says("No nodes with GPUs can be seen.")
	p.eval(`store.apply({ ...store.about, tables: { nodes: { set: all } } }); store.tell(); 0`, nil)
	p.says("100 nodes")
	p.eval(`store.join(); location.hash = "#fleet"`, nil)
	p.until("all that there is", `store.tables.nodes.size === 200 && store.tables.runs.size === 21`, 20*time.Second)
}

// seeOtherClocks counts down by the clock of the machine that serves the page: this one's is ten minutes late.
func seeOtherClocks(t *testing.T, p *tab) {
	p.eval(`globalThis.right = Date.now; Date.now = () => right() - 600e3; 0`, nil)
	p.until("another clock", `Math.abs(store.skew - 600e3) < 5000`, 20*time.Second)
	p.eval(`location.hash = "#waiting/ns/run-0020"`, nil)
	p.until("the way until a start", `/Starts:.*\(in 5\dm/.test(document.querySelector("aside")?.innerText)`,
		5*time.Second)
	p.eval(`Date.now = right; 0`, nil)
	p.until("the same clock", `store.skew === 0`, 20*time.Second)
}

// seeManyTabs opens more tabs than a browser has connections to a server: those that cannot be seen keep none.
func seeManyTabs(p *tab) {
	home := strings.Split(address(p), "#")[0]
	hide := `Object.defineProperty(document, "hidden", { value: true, configurable: true });
		document.dispatchEvent(new Event("visibilitychange")); 0`
	last := p
	for range 8 {
		last.eval(hide, nil)
		last = p.beside(home)
		last.until("the fleet", "globalThis.store?.tables.nodes.size === 200", 20*time.Second)
	}
	last.eval(hide, nil)
	p.eval(`store.tables.nodes.clear(); Object.defineProperty(document, "hidden", { value: false, configurable: true });
		document.dispatchEvent(new Event("visibilitychange")); 0`, nil)
	p.until("the fleet again", "store.tables.nodes.size === 200", 20*time.Second)
}

// seeSilence stops the server, which closes no connection: the page says so, and goes on when the server does.
func seeSilence(p *tab, server *os.Process) {
	p.eval(`store.patience = 2000; 0`, nil)
	server.Signal(syscall.SIGSTOP)
	p.says("The dashboard has ended, or cannot be reached")
	p.eval(`store.patience = 15000; 0`, nil)
	server.Signal(syscall.SIGCONT)
	p.until("that it is back", `!document.body.innerText.includes("cannot be reached")`, 30*time.Second)
}

// TestALongHistory shows the time of a ledger of 60,000 GPU leases that are closed, from a server that is slow: the
// shortest are left out, until a filter names them, and the past can be gone back to.
func TestALongHistory(t *testing.T) {
	s := oddFleet()
	const micro = "2006-01-02T15:04:05.000000Z"
	now := time.Now().UTC()
	for i := range 60_000 {
		l := largeLease(i%200, 0)
		l["metadata"].(object)["name"] = fmt.Sprintf("closed-%05d", i)
		spec := l["spec"].(object)
		spec["runRef"] = object{"namespace": "ns", "name": fmt.Sprintf("old-%05d", i), "uid": "u"}
		spec["slice"].(object)["nodes"] = []object{{"name": fmt.Sprintf("gke-prod-h100-pool-%04d", i%200), "gpus": 8}}
		end := now.Add(-time.Duration(i/60) * 40 * time.Minute)
		spec["start"] = end.Add(-time.Duration(20+i%60/6) * time.Minute).Format(micro)
		l["status"] = object{"closed": true, "ended": end.Format(micro), "closureReason": "Completed"}
		s.lists["leases"] = append(s.lists["leases"], l)
	}
	p, _ := begun(t, s.env(t))
	p.eval(`globalThis.asked = 0; const plain = fetch; globalThis.fetch = async (...of) => {
		asked++; await new Promise((done) => setTimeout(done, 2500)); return plain(...of); };
		location.hash = "#time"; 0`, nil)
	const days = `[...document.querySelectorAll(".tools button")].find((b) => b.textContent === "30d")`
	p.until("a view of many days to choose", days, 10*time.Second)
	p.eval(days+`.click()`, nil)
	took := p.until("the bars of eighteen days",
		`Number(document.querySelector("[data-bars]")?.dataset.bars) === 10000`, 30*time.Second)
	p.says("shorter bars are left out: choose a shorter time, or use the filter.")
	p.keep("long-history")
	var longest, asked float64
	p.eval(`globalThis.busy = [];
		new PerformanceObserver((list) => busy.push(...list.getEntries().map((e) => e.duration)))
			.observe({ entryTypes: ["longtask"] });
		new Promise((done) => setTimeout(done, 8000)).then(() => Math.max(0, ...busy))`, &longest)
	p.eval(`asked`, &asked)
	t.Logf("bars after %v, longest task %.0f ms, %.0f requests", took, longest, asked)
	if longest > 1000 {
		t.Errorf("the page is busy for %.0f ms at a time", longest)
	}
	p.eval(`location.hash = "#time?filter=old-00006"`, nil)
	p.until("a short bar that is named", `document.querySelector("[data-bars]")?.dataset.bars === "1"`, 30*time.Second)
	seeLongAgo(p)
	if used := p.memory(); used > 200 {
		t.Errorf("the page uses %.0f MB; 200 are allowed", used)
	}
	p.silent()
}

// seeLongAgo goes back ten days by the bar of the past.
func seeLongAgo(p *tab) {
	p.eval(`location.hash = "#fleet"; globalThis.goal = Date.now() - 240 * 3600e3 - 300e3; 0`, nil)
	p.until("the bar of the past", `document.querySelector(".past input")`, 10*time.Second)
	p.eval(`store.goTo(new Date(goal)); 0`, nil)
	p.until("what was held ten days ago", `store.then && Math.abs(Date.parse(store.then.about.at) - goal) < 2000 &&
		[...store.then.tables.runs.keys()].some((key) => key.startsWith("ns/old-"))`, 30*time.Second)
	p.says("The fleet as GPU leases tell of it at")
	p.keep("long-ago")
	p.eval(`store.goTo(null).then(() => 0)`, nil)
}

// memory is how many megabytes the page keeps.
func (p *tab) memory() (used float64) {
	p.t.Helper()
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, heapprofiler.CollectGarbage, cdp.Empty{})
		return err
	}))
	p.eval(`performance.memory.usedJSHeapSize / 1e6`, &used)
	return used
}
