package page

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser finds the browser, or says how to get one.
func browser(t testing.TB) string {
	for _, name := range []string{"chromium-headless-shell", "chromium", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("no Chromium is installed: apt-get install chromium-headless-shell, or that of your system")
	return ""
}

// tab is one page that is open in a browser of its own.
type tab struct {
	t   testing.TB
	ctx context.Context

	mu     sync.Mutex
	errors []string // what the console says that it should not
}

// open opens an address in a new browser that is so many pixels wide and high.
func open(t testing.TB, address string, width, height int64) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browser(t)), chromedp.NoSandbox,
		chromedp.Flag("enable-precise-memory-info", true))
	allocated, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	return openIn(t, allocated, address, width, height)
}

// beside opens an address in another tab of the same browser, of the same size.
func (p *tab) beside(address string) *tab {
	p.t.Helper()
	var size []int64
	p.eval("[innerWidth, innerHeight]", &size)
	return openIn(p.t, p.ctx, address, size[0], size[1])
}

func openIn(t testing.TB, in context.Context, address string, width, height int64) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(in)
	t.Cleanup(cancel)
	p := &tab{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, p.hear); err != nil { // it starts the browser, which ends with the context
		t.Fatal(err)
	}
	enable := chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, log.Enable, cdp.Empty{})
		return err
	})
	p.do(enable, chromedp.EmulateViewport(width, height), chromedp.Navigate(address))
	return p
}

// hear takes note of errors.
func (p *tab) hear(event any) {
	said := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		said = fmt.Sprintf("%s: %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			said = e.Entry.Text + " " + e.Entry.URL
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			said = fmt.Sprintf("%s: %v", e.Type, e.Args)
		}
	}
	if said != "" {
		p.mu.Lock()
		p.errors = append(p.errors, said)
		p.mu.Unlock()
	}
}

// silent fails the test if the console has said something.
func (p *tab) silent() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, said := range p.errors {
		p.t.Errorf("the console says: %s", said)
	}
}

func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// eval evaluates a script, and reads what it comes to into a value, unless that is nil.
func (p *tab) eval(script string, into any) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
	defer cancel()
	got, err := chromedp.Run(ctx, chromedp.Evaluate[json.RawMessage](script, func(e *runtime.EvaluateParams) {
		wait := true
		e.AwaitPromise = &wait
	}))
	if err == nil && into != nil {
		err = json.Unmarshal(got, into)
	}
	if err != nil {
		p.t.Fatalf("%.200s: %v", script, err)
	}
}

// until waits until a script says true, and returns how long that took.
func (p *tab) until(what, script string, within time.Duration) time.Duration {
	p.t.Helper()
	begun := time.Now()
	for {
		var so bool
		p.eval("Boolean("+script+")", &so)
		if took := time.Since(begun); so {
			return took
		} else if took > within {
			var text string
			p.eval("location.href + '\\n' + document.querySelector('input')?.value + '\\n' + document.body.innerText", &text)
			p.t.Fatalf("not seen within %v: %s. The page shows:\n%s", within, what, text)
		}
		p.eval("new Promise((done) => requestAnimationFrame(done)).then(() => 0)", nil)
	}
}

// says waits until the page shows a text.
func (p *tab) says(text string) {
	p.t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		p.t.Fatal(err)
	}
	p.until(text, fmt.Sprintf("document.body.innerText.includes(%s)", quoted), 20*time.Second)
}

// press presses keys, one after the other.
func (p *tab) press(keys ...string) {
	p.t.Helper()
	for _, key := range keys {
		p.do(chromedp.KeyEvent(key))
	}
}

// update has the pictures in docs be those of this test.
var update = flag.Bool("update", false, "write the pictures that docs show to docs/images")

// inDocs are the pictures that docs show.
var inDocs = []string{"fleet", "waiting", "lottery"}

// keep writes a picture of the page to a file, for people to look at.
func (p *tab) keep(name string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	p.write(cmp.Or(os.Getenv("SCREENSHOTS"), "screenshots"), name, picture)
	if *update && slices.Contains(inDocs, name) {
		p.write(filepath.Join(root, "docs", "images"), name, picture)
	}
}

func (p *tab) write(dir, name string, picture []byte) {
	p.t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// prefers has the person prefer light or dark colours.
func (p *tab) prefers(scheme string) {
	p.t.Helper()
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return err
	}))
}
