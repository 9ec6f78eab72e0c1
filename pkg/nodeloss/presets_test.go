package nodeloss

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// TestThePresetsAreListed compares the table of the docs with the presets.
func TestThePresetsAreListed(t *testing.T) {
	text, err := os.ReadFile("../../docs/operators.md")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for i := range Presets {
		p := &Presets[i]
		keeps := "-"
		if p.Keeps != "" {
			keeps = "`" + p.Keeps + "`"
		}
		fmt.Fprintf(&table, "| `%s` | `%s` | %s |\n", p.Name, strings.Join(p.Conditions, "`, `"), keeps)
	}
	if !strings.Contains(string(text), table.String()) {
		t.Errorf("docs/operators.md lacks this table:\n%s", table.String())
	}
}

// TestPresets asks of every condition of a preset that it is evidence when the preset is on, and not otherwise,
// cordoned or not.
func TestPresets(t *testing.T) {
	all := ConditionsOf(PresetNames())
	for i := range Presets {
		p := &Presets[i]
		on, off := Rules{Conditions: ConditionsOf([]string{p.Name})}, Rules{}
		for j, kind := range p.Conditions {
			if problems := validation.IsQualifiedName(kind); len(problems) > 0 || slices.Contains(p.Conditions[:j], kind) {
				t.Errorf("%s lists %s: %v", p.Name, kind, problems)
			}
			for _, cordoned := range []bool{false, true} {
				n := node(is(corev1.NodeConditionType(kind), corev1.ConditionTrue))
				n.Spec.Unschedulable = cordoned
				if reason, _, lost := on.Evident(n); !lost || reason != Condition {
					t.Errorf("%s is no evidence (%q)", kind, reason)
				}
				if _, _, lost := off.Evident(n); lost {
					t.Errorf("%s is evidence without its preset", kind)
				}
			}
		}
	}
	if slices.Contains(all, "CSPMaintenance") || slices.Contains(all, string(corev1.NodeReady)) {
		t.Errorf("%v list what is no fault", all)
	}
	if got := ConditionsOf([]string{"other"}); got != nil {
		t.Errorf("an unknown preset lists %v", got)
	}
}
