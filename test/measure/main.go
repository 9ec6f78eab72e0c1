// Command measure plays the scenarios on a real control plane one after the other and prints what each costs: how long
// it takes, the processor time of all that it has run, how long and for what it waits, how near it came to a limit, and
// whether the simulated cluster tells the same story. The machine should do nothing else meanwhile.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	run := flag.String("run", "", "measure the scenarios that match this regular expression only")
	pkg := flag.String("pkg", "./test/integration", "the package of the scenarios")
	longest := flag.Int("longest", 50, "print so many of those that take longest; 0 for all")
	nearest := flag.Int("nearest", 10, "print so many of those that came nearest to a limit; 0 for all")
	flag.Parse()
	if err := measure(*pkg, *run, *longest, *nearest); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

// scenario is what one has cost.
type scenario struct {
	name      string
	wall, cpu time.Duration
	failed    bool
	// waited is how long it waited in all, and longest for what it waited longest.
	waited  time.Duration
	longest wait
	// near is the share of its limit, at most 1, that the wait took that came nearest to it.
	near    float64
	nearest wait
	// twin is the file of tests that tell such a story on the simulated cluster; empty without.
	twin string
}

// wait is one wait of a scenario, as tests write it into the file that JOBTREE_WAITS names.
type wait struct {
	Test, What           string
	Seconds, Limit, Left float64
}

func measure(pkg, run string, longest, nearest int) error {
	dir, err := os.MkdirTemp("", "jobtree-measure-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary, waits := filepath.Join(dir, "scenarios"), filepath.Join(dir, "waits")
	if out, err := exec.Command("go", "test", "-c", "-o", binary, pkg).CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	test := exec.Command(binary, "-test.v=test2json", "-test.parallel=1", "-test.timeout=6h", "-test.run="+run)
	test.Dir, test.Env = pkg, append(os.Environ(), "JOBTREE_WAITS="+waits)
	events := exec.Command("go", "tool", "test2json")
	if events.Stdin, err = test.StdoutPipe(); err != nil {
		return err
	}
	out, err := events.StdoutPipe()
	if err != nil {
		return err
	}
	if err := errors.Join(events.Start(), test.Start()); err != nil {
		return err
	}
	began := time.Now()
	scenarios, err := follow(out, meter{test.Process.Pid})
	if err = errors.Join(err, events.Wait()); err != nil {
		return err
	}
	failed := test.Wait()
	if err := readWaits(waits, scenarios); err != nil {
		return err
	}
	if err := findTwins(pkg, scenarios); err != nil {
		return err
	}
	return errors.Join(report(os.Stdout, scenarios, time.Since(began), longest, nearest), failed)
}

// event is one of test2json's.
type event struct {
	Action, Test string
	Elapsed      float64
}

// follow reads the events of tests of which one runs at a time, and gives each the processor time until the next.
func follow(events io.Reader, m interface{ used() time.Duration }) (map[string]*scenario, error) {
	all, active, before := map[string]*scenario{}, "", m.used()
	for lines := bufio.NewReader(events); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("%w: %s", err, line)
		}
		name, _, within := strings.Cut(e.Test, "/")
		if name == "" || e.Action == "output" {
			continue
		}
		now := m.used()
		if s := all[active]; s != nil {
			s.cpu += now - before
		}
		before = now
		if all[name] == nil {
			all[name] = &scenario{name: name}
		}
		switch e.Action {
		case "run", "cont":
			active = name
		case "pause":
			active = ""
		case "pass", "fail", "skip":
			if within {
				continue
			}
			s := all[name]
			active, s.failed = "", e.Action == "fail"
			s.wall = time.Duration(e.Elapsed * float64(time.Second))
			fmt.Fprintf(os.Stderr, "%s %s: %.1fs, %.1fs of processor time\n", e.Action, name, e.Elapsed, s.cpu.Seconds())
		}
	}
}

// readWaits adds up the waits of the scenarios.
func readWaits(path string, all map[string]*scenario) error {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // none waited
	} else if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	for decoder := json.NewDecoder(file); ; {
		var w wait
		if err := decoder.Decode(&w); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		name, _, _ := strings.Cut(w.Test, "/")
		s := all[name]
		if s == nil {
			continue
		}
		s.waited += time.Duration(w.Seconds * float64(time.Second))
		if w.Seconds > s.longest.Seconds {
			s.longest = w
		}
		if near := 1 - max(w.Left, 0)/w.Limit; near > s.near {
			s.near, s.nearest = near, w
		}
	}
}

// findTwins finds the tests of the book that have the name of a scenario's file.
func findTwins(pkg string, all map[string]*scenario) error {
	files, err := filepath.Glob(filepath.Join(pkg, "*_test.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		twin := filepath.Join("pkg", "book", filepath.Base(file))
		if _, err := os.Stat(twin); err != nil {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, s := range all {
			if strings.Contains(string(text), "func "+s.name+"(") {
				s.twin = twin
			}
		}
	}
	return nil
}

// report prints two tables: those that take longest, and those that came nearest to a limit.
func report(to io.Writer, all map[string]*scenario, took time.Duration, longest, nearest int) error {
	var list []*scenario
	var wall, cpu time.Duration
	for _, s := range all {
		list = append(list, s)
		wall, cpu = wall+s.wall, cpu+s.cpu
	}
	fmt.Fprintf(to, "%d scenarios, one after the other: %.0f s, of which they take %.0f, and %.1f minutes of processor "+
		"time\n\n", len(list), took.Seconds(), wall.Seconds(), cpu.Minutes())
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	most := func(of func(*scenario) float64) {
		slices.SortFunc(list, func(a, b *scenario) int {
			return cmp.Or(cmp.Compare(of(b), of(a)), cmp.Compare(a.name, b.name))
		})
	}
	most(func(s *scenario) float64 { return s.wall.Seconds() })
	fmt.Fprintln(table, "SCENARIO\tSECONDS\tPROCESSOR\tWAITS\tLONGEST\tFOR\tTWIN")
	for _, s := range first(list, longest) {
		fmt.Fprintf(table, "%s\t%.1f\t%.1f\t%.1f\t%.1f\t%.60s\t%s\n", s.name, s.wall.Seconds(), s.cpu.Seconds(),
			s.waited.Seconds(), s.longest.Seconds, s.longest.What, s.twin)
	}
	most(func(s *scenario) float64 { return s.near })
	fmt.Fprintln(table, "\t\t\t\t\t\t\nNEAREST TO A LIMIT\tSHARE\tSECONDS\tLIMIT\t\tFOR\t")
	for _, s := range first(list, nearest) {
		fmt.Fprintf(table, "%s\t%.2f\t%.1f\t%.0f\t\t%.60s\t\n", s.nearest.Test, s.near, s.nearest.Seconds, s.nearest.Limit,
			s.nearest.What)
	}
	return table.Flush()
}

// first are the first n of some, all for 0.
func first(all []*scenario, n int) []*scenario {
	if n == 0 {
		return all
	}
	return all[:min(n, len(all))]
}
