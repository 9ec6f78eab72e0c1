package sbatch

import (
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// FuzzTranslate: a script is refused with a message, or becomes a Run that can be written and read, whose widths are
// whole pods and groups, and whose container does what the script does.
func FuzzTranslate(f *testing.F) {
	f.Add(script("-N 2-4 --gpus-per-node=h100:8 -c12 --mem-per-cpu=2G --switches=1@5 --time=1-2:3") + "srun x $$ " +
		"$(RANK)\n")
	f.Add(script("-n 10 --gpus-per-task=2 -A 'a b' --frob \"x # y\" # z"))
	f.Fuzz(func(t *testing.T, text string) {
		run, notes, err := translate(text, with)
		if err != nil {
			if wrong := new(Error); !errors.As(err, &wrong) || wrong.Text == "" {
				t.Errorf("refused with %#v", err)
			}
			return
		}
		for _, n := range notes {
			if n.Text == "" {
				t.Errorf("told nothing about %q in line %d", n.Of, n.Line)
			}
		}
		written, err := yaml.Marshal(run)
		if err != nil {
			t.Fatal(err)
		}
		var read rqv1.Run
		if err := yaml.UnmarshalStrict(written, &read); err != nil {
			t.Fatalf("%v\n%s", err, written)
		}
		if asJSON(t, run) != asJSON(t, &read) {
			t.Errorf("written as %s\nand read as %s", asJSON(t, run), asJSON(t, &read))
		}
		whole(t, &run.Spec)
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if command := run.Spec.Template.Spec.Containers[0].Command; len(command) > 0 &&
			expand(command[len(command)-1]) != s.Body {
			t.Errorf("the container does %q, not %q", command, s.Body)
		}
	})
}

// whole fails the test unless the widths of a Run are such as the API takes.
func whole(t *testing.T, spec *rqv1.RunSpec) {
	t.Helper()
	widths := []int32{spec.Resources.TotalGPUs}
	if m := spec.Malleable; m != nil {
		widths = append(widths, m.MinTotalGPUs, m.MaxTotalGPUs, m.StepGPUs, m.MaxTotalGPUs-m.MinTotalGPUs)
	}
	units := []int32{1}
	if p := spec.Resources.GPUsPerPod; p != nil {
		units = append(units, *p)
	}
	if l := spec.Locality; l != nil && l.GroupGPUs != nil {
		if *l.GroupGPUs%units[len(units)-1] != 0 {
			t.Errorf("groups of %d GPUs in pods of %d", *l.GroupGPUs, units[len(units)-1])
		}
		units = append(units, *l.GroupGPUs)
	}
	for _, w := range widths {
		for _, u := range units {
			if w < 1 || u < 1 || w > mostGPUs || w%u != 0 {
				t.Errorf("a width of %d GPUs, in pods or groups of %d", w, u)
			}
		}
	}
}

// expand does to a word of a command what Kubernetes does to it, with every variable in capitals set.
func expand(word string) string {
	var out strings.Builder
	for i := 0; i < len(word); i++ {
		if word[i] != '$' || i+1 == len(word) {
			out.WriteByte(word[i])
			continue
		}
		i++
		end := strings.IndexByte(word[i:], ')')
		switch {
		case word[i] == '$':
			out.WriteByte('$')
		case word[i] == '(' && end > 0:
			name := word[i+1 : i+end]
			if expanded.MatchString("$("+name+")") && !strings.ContainsAny(name, "$(") {
				name = "SET"
			}
			out.WriteString("$(" + name + ")")
			i += end
		default:
			out.WriteString("$" + word[i:i+1])
		}
	}
	return out.String()
}
