package page

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// cell is a script for what a table says of something in one column: the row begins with its name.
func cell(row, column string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("main .scroll table")].flatMap((table) => {
		const at = [...table.querySelectorAll("thead th")].findIndex((th) => th.textContent === %q);
		const row = [...table.querySelectorAll("tbody tr")].find((tr) => tr.cells[0].textContent === %q);
		return row && at >= 0 ? [row.cells[at].textContent] : []; })[0]`, column, row)
}

// cells is a script for the sum of a column, over the rows that have a text in another one.
func cells(of, with, column string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("main .scroll table")].map((table) => {
		const at = (title) => [...table.querySelectorAll("thead th")].findIndex((th) => th.textContent === title);
		return [...table.querySelectorAll("tbody tr")].filter((tr) => tr.cells[at(%q)]?.textContent === %q)
			.reduce((n, tr) => n + Number(tr.cells[at(%q)].textContent), 0); })[0]`, of, with, column)
}

// seeTables opens the table behind each picture by its address and by its key. Each says what the command line says.
func seeTables(t *testing.T, c *cluster, p *tab) {
	open := `(i) => !i.status.closed && i.spec.runRef.name === "base-96"`
	gpus := `(n, i) => n + i.spec.slice.nodes.reduce((m, node) => m + node.gpus, 0)`
	views := []struct{ view, command, table, says string }{
		{"fleet", "runs fleet -o json", cells("Type", "H100-80GB", "Free"),
			`.domains.reduce((n, domain) => n + domain.free, 0)`},
		{"time", "runs leases -A -o json", cells("What", "rai/base-96", "GPUs"),
			`.items.filter(` + open + `).reduce(` + gpus + `, 0)`},
		{"money", "runs budgets usage -o json", cell("rai/east-h100", "Free"),
			`.envelopes.find((e) => e.budget === "rai" && e.envelope === "east-h100").freeGPUs`},
		{"waiting", "runs list -A -o json", cell("rai/vision-16", "Message"),
			`.items.find((r) => r.metadata.name === "vision-16").status.message`},
		{"lottery", "get reservations -n rai -o json", cells("Reservation", "rai/vision-16-r0", "GPUs cut"),
			`.items.find((r) => r.metadata.name === "vision-16-r0").status.cuts.reduce((n, cut) => n + cut.gpus, 0)`},
	}
	for i, v := range views {
		p.eval(`location.hash = "#`+v.view+`?table"`, nil)
		p.until("the table of "+v.view, `document.querySelector("main").className === "`+v.view+`" &&
			document.querySelector("header [aria-pressed=true]")`, 5*time.Second)
		said := "(" + c.kubectl(v.command) + ")" + v.says
		same := fmt.Sprintf(`(%s) !== undefined && (%s) === String(%s)`, v.table, `String(`+v.table+`)`, said)
		p.until("in the table of "+v.view+" what the command line says", same, 10*time.Second)
		p.keep("table-" + v.view)
		picture := `document.querySelector("main").innerText`
		var shown string
		p.eval(picture, &shown)
		p.press("t")
		p.until("another picture of "+v.view, fmt.Sprintf(`!location.hash.includes("table") && %s !== %q`, picture, shown),
			5*time.Second)
		p.press(string(rune('1'+i)), "t")
		p.until("the table of "+v.view+" by its key", same, 10*time.Second)
		p.press("t")
	}
	p.eval(`location.hash = "#fleet"`, nil)
	seeNarrowTables(t, p)
}

// seeNarrowTables finds that a table that is wider than the page scrolls, and that nothing else is.
func seeNarrowTables(t *testing.T, p *tab) {
	p.do(chromedp.EmulateViewport(480, 800))
	for _, view := range []string{"money", "waiting", "lottery"} {
		p.eval(`location.hash = "#`+view+`?table"`, nil)
		p.until("the table of "+view, `document.querySelector("main").className === "`+view+`" &&
			document.querySelector("main .scroll table")`, 5*time.Second)
		var wide int
		p.eval(`document.documentElement.scrollWidth`, &wide)
		if wide > 480 {
			t.Errorf("the page of %s is %d pixels wide", view, wide)
		}
		p.keep("table-narrow-" + view)
	}
	p.do(chromedp.EmulateViewport(1280, 800))
	p.eval(`location.hash = "#fleet"`, nil)
}
