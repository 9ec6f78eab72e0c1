// Flakes runs tests again and again, shuffled with a new seed each time, in turns alone and beside two busy loops, and
// tells which of them fail at times. What it saw of one state of the code adds up from call to call.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// The kinds of runs, in the order in which they take turns.
const (
	alone = "alone"
	busy  = "busy"
)

var kinds = []string{alone, busy}

// loops is how many busy loops a run of the second kind has beside it.
const loops = 2

// The kernel ends a child with the thread that started it: the main thread lasts.
func init() { runtime.LockOSThread() }

func main() {
	p := &play{}
	n := flag.Int("n", 20, "runs of each `kind` that there are to be, those of earlier calls included")
	packages := flag.String("packages", "./test/integration", "the packages whose tests run, one after the other")
	state := flag.String("state", "", "what names the state of the code; results of one state add up")
	logs := flag.String("logs", "logs/flakes", "the directory of results")
	flag.StringVar(&p.tests.Match, "run", "", "a regular expression: only tests with such names run")
	flag.IntVar(&p.tests.Parallel, "parallel", 10, "tests of a package that run at once")
	flag.DurationVar(&p.limit, "timeout", time.Hour, "the longest that the tests of one package may take")
	flag.Parse()
	if *state == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	runtime.GOMAXPROCS(runtime.NumCPU() + loops) // who reads what the tests say is not to wait for the loops
	p.dir = filepath.Join(*logs, *state)
	red, err := p.all(ctx, *n, strings.Fields(*packages))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || red {
		os.Exit(1)
	}
}

// all runs what is missing of n runs of each kind, prints the table of all that there are, also when it is
// interrupted, and reports whether any was red.
func (p *play) all(ctx context.Context, n int, patterns []string) (red bool, err error) {
	if err := p.build(ctx, patterns); err != nil {
		return false, err
	}
	had, err := load(p.dir, p.tests)
	if err != nil {
		return false, err
	}
	fmt.Printf("%d runs of each kind of %s; %d are there already, in %s\n", n, p.tests, len(had), p.dir)
	for {
		kind := next(had, n)
		if kind == "" {
			break
		}
		var r *run
		if r, err = p.once(ctx, kind, rand.Int64N(1<<53)); err != nil {
			break
		}
		had = append(had, r)
		fmt.Printf("%s  run %d, %s: %s after %v, seed %d\n", time.Now().Format(time.TimeOnly), len(had), kind,
			r.verdict(), r.wall().Round(time.Second), r.Seed)
	}
	fmt.Print("\n", table(had))
	for _, r := range had {
		red = red || r.verdict() == isRed
	}
	return red, err
}

// next is the kind of the next run: the one of which there are fewer; none if there are n of each.
func next(had []*run, n int) string {
	count := map[string]int{}
	for _, r := range had {
		count[r.Kind]++
	}
	kind := alone
	if count[busy] < count[alone] {
		kind = busy
	}
	if count[kind] >= n {
		return ""
	}
	return kind
}
