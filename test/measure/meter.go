package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor time in /proc, on every architecture that Go knows.
const tick = 10 * time.Millisecond

// meter reads how much processor time a process and all that it has started have used.
type meter struct{ pid int }

// used adds up the process, what it has started that still runs, and what it has started that has ended. What a child
// has started is the child's once it has ended.
func (m meter) used() time.Duration {
	parents, own := map[int]int{}, map[int]time.Duration{}
	paths, _ := filepath.Glob("/proc/[0-9]*/stat") // sorted; fails for a bad pattern only
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		if pid, parent, used, err := parseStat(string(data)); err == nil {
			parents[pid], own[pid] = parent, used
		}
	}
	var sum time.Duration
	for pid, used := range own {
		for at := pid; at > 0; at = parents[at] {
			if at == m.pid {
				sum += used
				break
			}
		}
	}
	return sum
}

// parseStat reads a line of /proc/PID/stat: the id, the parent's, and the processor time with that of ended children.
// The name, in parentheses, may hold anything.
func parseStat(line string) (pid, parent int, used time.Duration, err error) {
	begin, end := strings.Index(line, "("), strings.LastIndex(line, ")")
	if begin < 0 || end < begin {
		return 0, 0, 0, fmt.Errorf("no name in %q", line)
	}
	if pid, err = strconv.Atoi(strings.TrimSpace(line[:begin])); err != nil {
		return 0, 0, 0, err
	}
	fields := strings.Fields(line[end+1:])
	const ppid, utime, cstime = 1, 11, 14
	if len(fields) <= cstime {
		return 0, 0, 0, fmt.Errorf("%d fields after the name in %q", len(fields), line)
	}
	if parent, err = strconv.Atoi(fields[ppid]); err != nil {
		return 0, 0, 0, err
	}
	for _, field := range fields[utime : cstime+1] {
		ticks, err := strconv.Atoi(field)
		if err != nil {
			return 0, 0, 0, err
		}
		used += time.Duration(ticks) * tick
	}
	return pid, parent, used, nil
}
