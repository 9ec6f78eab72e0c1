package docs

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/test/controlplane"
)

// checkout returns the root of the repository.
func checkout(t *testing.T) string {
	t.Helper()
	root, err := controlplane.Root()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// read returns what a file has that is named from the root.
func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(checkout(t), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestConfigurationTable holds the operators' table against the arguments that exist and their defaults.
func TestConfigurationTable(t *testing.T) {
	got := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z][A-Za-z]*)` \\| ([^|]*) \\|").FindAllStringSubmatch(
		read(t, "docs/operators.md"), -1) {
		got[row[1]] = strings.Trim(row[2], "`")
	}
	defaults, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	values := reflect.ValueOf(*defaults)
	for i := range values.NumField() {
		name, _, _ := strings.Cut(values.Type().Field(i).Tag.Get("json"), ",")
		if name == "" {
			continue // apiVersion and kind
		}
		text, err := yaml.Marshal(values.Field(i).Interface())
		if err != nil {
			t.Fatal(err)
		}
		want[name] = inOneLine(string(text))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/operators.md (-arguments +table):\n%s", diff)
	}
}

// inOneLine writes the YAML of a default as the table has it.
func inOneLine(text string) string {
	text = strings.TrimSpace(text)
	if items, ok := strings.CutPrefix(text, "- "); ok {
		return "[" + strings.ReplaceAll(items, "\n- ", ", ") + "]"
	}
	if text == "{}" || text == "null" {
		return "none"
	}
	return strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(text) // 720h0m0s, 2m0s
}

// TestLinks follows every relative link of the documentation.
func TestLinks(t *testing.T) {
	root := checkout(t)
	var files []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/cli/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(data), "\n") {
			for _, match := range link.FindAllStringSubmatch(line, -1) {
				if _, err := os.Stat(filepath.Join(filepath.Dir(file), match[1])); err != nil {
					t.Errorf("%s:%d leads nowhere: %s", file, i+1, match[1])
				}
			}
		}
	}
}

// TestClosureReasons holds the table of reasons in docs/concepts.md against those that the API has.
func TestClosureReasons(t *testing.T) {
	files := map[string]string{}
	for _, name := range []string{"manifests/crd/rq.davidlangworthy.io_leases.yaml", "docs/concepts.md"} {
		files[filepath.Ext(name)] = read(t, name)
	}
	list := regexp.MustCompile(`closureReason:\n(?:.*\n)*?\s+enum:\n((?:\s+- .*\n)+)`).FindStringSubmatch(files[".yaml"])
	_, table, found := strings.Cut(files[".md"], "| reason why a Lease closed |")
	if list == nil || !found {
		t.Fatalf("no list of reasons in the CRD (%v) or no table of them in the page (%v)", list != nil, found)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var want, got []string
	for _, reason := range regexp.MustCompile(`- (\w+)`).FindAllStringSubmatch(list[1], -1) {
		want = append(want, reason[1])
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(table, -1) {
		got = append(got, row[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/concepts.md (-API +table):\n%s", diff)
	}
}

// TestPolicyTable holds the operators' table of admission policies against those that are installed.
func TestPolicyTable(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "docs/operators.md"), "\n| policy |")
	table, _, _ = strings.Cut(table, "\n\n")
	var got []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(jobtree-[a-z-]+)` \\|").FindAllStringSubmatch(table, -1) {
		got = append(got, row[1])
	}
	files, err := filepath.Glob(filepath.Join(checkout(t), "manifests", "policy", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile(`kind: ValidatingAdmissionPolicy\nmetadata:\n  name: (.*)\n`)
		for _, policy := range named.FindAllStringSubmatch(string(text), -1) {
			want = append(want, policy[1])
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
		t.Errorf("docs/operators.md (-policies +table):\n%s", diff)
	}
}
