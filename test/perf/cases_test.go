package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTheSmallSizeHasEveryCase: what the full size measures, by kind of workload and scheduler, the small one measures
// too, so that whatever breaks is broken in CI already.
func TestTheSmallSizeHasEveryCase(t *testing.T) {
	if diff := cmp.Diff(kinds(sizes["full"]), kinds(sizes["tiny"])); diff != "" {
		t.Errorf("-full +tiny:\n%s", diff)
	}
}

// kinds lists the cases of a size: groups of workloads with their schedulers, and what else there is to count of.
func kinds(of size) []string {
	var out []string
	for _, w := range of.workloads {
		group, _, _ := strings.Cut(w.name, "/")
		out = append(out, fmt.Sprint(group, w.schedulers))
	}
	for name, part := range map[string]any{"rebind": of.rebind, "crowd fleet": of.crowd.fleet, "crowd": of.crowd.waits,
		"backlog": of.backlog, "history": of.history, "commands": of.commands} {
		v := reflect.ValueOf(part)
		for i := range v.NumField() {
			if field := v.Type().Field(i).Name; field != "Target" && !v.Field(i).IsZero() {
				out = append(out, name+" "+field)
			}
		}
	}
	slices.Sort(out)
	return out
}
