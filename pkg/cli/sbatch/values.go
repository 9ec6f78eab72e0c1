package sbatch

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// mostGPUs bounds every count in a script, as it does a Run's GPUs.
const mostGPUs = 1_000_000

// digits matches a number that no computation here overflows with.
var digits = regexp.MustCompile(`^[0-9]{1,9}$`)

// number reads digits.
func number(text string) (int64, bool) {
	if !digits.MatchString(text) {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// count reads the value of an option that counts something.
func count(o *Option) (int64, error) {
	n, ok := number(o.Value)
	if !ok || n < 1 || n > mostGPUs {
		return 0, refuse(o, "expected a whole number from 1 to %d, such as --%s=4", mostGPUs, o.Name)
	}
	return n, nil
}

// span reads a number of nodes, or the least and the most of them.
func span(o *Option) (least, most int64, err error) {
	from, to, ranges := strings.Cut(o.Value, "-")
	least, ok := number(from)
	most = least
	if ranges && ok {
		most, ok = number(to)
	}
	switch {
	case !ok || least < 1 || most > mostGPUs:
		return 0, 0, refuse(o, "expected a number of nodes or a range, such as --nodes=4 or --nodes=2-4")
	case most < least:
		return 0, 0, refuse(o, "the most nodes are fewer than the least: write --nodes=%d-%d", most, least)
	}
	return least, most, nil
}

// gpus are GPUs of one type, which may be unsaid.
type gpus struct {
	count int64
	kind  string
}

// readGPUs reads [TYPE:]COUNT.
func readGPUs(o *Option, text string) (gpus, error) {
	kind, amount, typed := strings.Cut(text, ":")
	if !typed {
		kind, amount = "", text
	}
	if n, ok := number(amount); ok && n <= mostGPUs && (kind != "" || !typed) {
		return gpus{n, kind}, nil
	}
	if !typed && text != "" && !digits.MatchString(text) && !strings.ContainsAny(text, ",=() ") {
		return gpus{1, text}, nil
	}
	if strings.Contains(text, ",") {
		return gpus{}, refuse(o, "all GPUs of a Run have one type: write a script for each type")
	}
	return gpus{}, refuse(o, "expected a number of GPUs, at most %d, with or without a type, such as 8 or h100:8",
		mostGPUs)
}

// readGres reads the GPUs of a list of generic resources, and returns what else is in it.
func readGres(o *Option) (found *gpus, others []string, err error) {
	for item := range strings.SplitSeq(o.Value, ",") {
		name, rest, _ := strings.Cut(strings.TrimPrefix(item, "gres/"), ":")
		switch {
		case name != "gpu" && item != "" && item != "none":
			others = append(others, item)
			continue
		case name != "gpu":
			continue
		case found != nil:
			return nil, nil, refuse(o, "GPUs are requested twice, and all GPUs of a Run have one type: request them once")
		}
		if rest == "" {
			rest = "1"
		}
		g, err := readGPUs(o, rest)
		if err != nil {
			return nil, nil, err
		}
		found = &g
	}
	return found, others, nil
}

// longest is the longest duration that a Run can have.
const longest = 999_999 * time.Hour

// duration reads a time limit in any of Slurm's formats; 0 for none.
func duration(o *Option) (time.Duration, error) {
	if text := strings.ToUpper(o.Value); text == "UNLIMITED" || text == "INFINITE" {
		return 0, nil
	}
	days, clock, dated := strings.Cut(o.Value, "-")
	if !dated {
		days, clock = "0", o.Value
	}
	parts := strings.Split(clock, ":")
	units := map[int][]time.Duration{1: {time.Minute}, 2: {time.Minute, time.Second},
		3: {time.Hour, time.Minute, time.Second}}[len(parts)]
	if dated {
		units = []time.Duration{time.Hour, time.Minute, time.Second}
	}
	sum, ok := number(days)
	total := float64(sum) * 24 * float64(time.Hour)
	exact := time.Duration(sum) * 24 * time.Hour
	for i, part := range parts {
		n, isNumber := number(part)
		if !isNumber || i >= len(units) {
			ok = false
			break
		}
		total += float64(n) * float64(units[i])
		exact += time.Duration(n) * units[i]
	}
	switch {
	case !ok:
		return 0, refuse(o, "expected MINUTES, MINUTES:SECONDS, HOURS:MINUTES:SECONDS, DAYS-HOURS, DAYS-HOURS:MINUTES or "+
			"DAYS-HOURS:MINUTES:SECONDS, such as --time=1-12:00:00")
	case total > float64(longest):
		return 0, refuse(o, "a Run may last %d hours at most: leave it out for no limit", int64(longest/time.Hour))
	}
	return exact, nil
}

// memorySize matches an amount of memory.
var memorySize = regexp.MustCompile(`^([0-9]{1,9})([KMGT]?)(I?B)?$`)

// mostMemory bounds an amount of memory, in KiB.
const mostMemory = 1 << 40

// memory reads an amount of memory, in KiB.
func memory(o *Option) (int64, error) {
	parts := memorySize.FindStringSubmatch(strings.ToUpper(o.Value))
	if parts == nil {
		return 0, refuse(o, "expected a whole number with K, M, G or T, or of megabytes, such as --%s=64G", o.Name)
	}
	n, _ := number(parts[1])
	unit := map[string]int64{"K": 1, "": 1 << 10, "M": 1 << 10, "G": 1 << 20, "T": 1 << 30}[parts[2]]
	if n > mostMemory/unit {
		return 0, refuse(o, "no node has that much memory: ask for less")
	}
	return n * unit, nil
}
