package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const head = "apiVersion: rq.davidlangworthy.io/v1\nkind: Run\nmetadata:\n  name: x\nspec:\n  owner: org:a\n"

// decodeAll decodes a stream and returns the names of its objects, and its errors.
func decodeAll(t *testing.T, text string) (names, problems []string) {
	t.Helper()
	documents, err := ReadDocuments(t.Context(), Stdin, strings.NewReader(text))
	if err != nil {
		return nil, []string{err.Error()}
	}
	for _, d := range documents {
		objects, err := Decode(d)
		if err != nil {
			problems = append(problems, d.String()+": "+err.Error())
		}
		for _, object := range objects {
			names = append(names, object.GetKind()+" "+object.GetName()+object.GetGenerateName())
		}
	}
	return names, problems
}

func TestDecode(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"several documents":  {head + "---\n# nothing\n---\n" + strings.Replace(head, "x", "z", 1), "Run x,Run z"},
		"left to the server": {head + "  runtime: {checkpoint: ten}\n", "Run x"},
		"marker at the top":  {"---\n" + head, "Run x"},
		"CRLF":               {strings.ReplaceAll(head+"---\n"+head, "\n", "\r\n"), "Run x,Run x"},
		"dashes in a text": {head +
			"  template:\n    spec:\n      containers:\n        - name: a\n          args:\n            - |\n              " +
			"---\n              b\n", "Run x"},
		"JSON stream": {
			`{"apiVersion":"rq.davidlangworthy.io/v1","kind":"Run","metadata":{"name":"a"}} ` +
				`{"apiVersion":"rq.davidlangworthy.io/v1","kind":"Budget","metadata":{"name":"b"}}`, "Run a,Budget b"},
		"List": {
			"apiVersion: v1\nkind: List\nmetadata: {}\nitems:\n- {apiVersion: rq.davidlangworthy.io/v1, kind: Run, metadata: " +
				"{name: a}}\n", "Run a"},
		"RunList": {"apiVersion: rq.davidlangworthy.io/v1\nkind: RunList\nitems:\n- metadata: {generateName: a-}\n",
			"Run a-"},
		"nothing": {"", ""},
	} {
		names, problems := decodeAll(t, c.text)
		if diff := cmp.Diff(c.want, strings.Join(names, ",")); diff != "" || problems != nil {
			t.Errorf("%s (-want +got): %s problems: %v", name, diff, problems)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"unknown field": {head + "  gpus: 8\n", `document 1: unknown field "spec.gpus"`},
		"other case":    {head + "  resources: {totalGpus: 8}\n", `unknown field "spec.resources.totalGpus"`},
		"field in a template": {head + "  template: {spec: {containers: [{name: a, img: b}]}}\n",
			`unknown field "spec.template.spec.containers[0].img"`},
		"duplicate in YAML": {head + "---\n" + head + "  owner: org:b\n",
			`document 2: line 14: key "owner" already set in map`},
		"duplicate in JSON": {
			`{"apiVersion":"rq.davidlangworthy.io/v1","kind":"Run","metadata":{"name":"a"},"spec":{"owner":"a","owner":"b"}}`,
			`duplicate field "spec.owner"`},
		"text for a number": {head + "  resources: {totalGPUs: '8'}\n",
			`field "spec.resources.totalGPUs": want a whole number of at most 2147483647, not a string`},
		"fraction": {head + "  resources: {totalGPUs: 1.5}\n",
			`field "spec.resources.totalGPUs": want a whole number of at most 2147483647, not 1.5`},
		"huge number":       {head + "  resources: {totalGPUs: 99999999999}\n", `not 99999999999`},
		"number for a text": {strings.Replace(head, "org:a", "5", 1), `field "spec.owner": want a string, not a number`},
		"list for a map":    {head + "  resources: []\n", `field "spec.resources": want a map, not a list`},
		"no kind":           {"apiVersion: rq.davidlangworthy.io/v1\n", `field "kind" is missing`},
		"no apiVersion":     {"kind: Run\n", `field "apiVersion" is missing`},
		"no name":           {"apiVersion: rq.davidlangworthy.io/v1\nkind: Run\n", `field "metadata.name" is missing`},
		"foreign kind": {"apiVersion: v1\nkind: Pod\n",
			`kind Pod of v1 is not one of jobtree's kinds; create it with "kubectl create"`},
		"other version": {"apiVersion: rq.davidlangworthy.io/v2\nkind: Run\n",
			`there is no kind Run of rq.davidlangworthy.io/v2; did you mean`},
		"plain text":  {"hello\n", "not an API object"},
		"broken YAML": {head + "---\na: [\n", "document 2: line 8: did not find expected node content"},
		"broken JSON": {`{"a": }`, "standard input, document 1: not valid JSON"},
		"item of a List": {
			"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: rq.davidlangworthy.io/v1, kind: Run, " +
				"metadata: {name: a}, spec: {x: 1}}\n", `items[0]: unknown field "spec.x"`},
		"field of a List": {"apiVersion: v1\nkind: List\nitem: []\n", `unknown field "item"`},
	} {
		names, problems := decodeAll(t, c.text)
		if len(problems) != 1 || !strings.Contains(problems[0], c.want) {
			t.Errorf("%s: got %v and %q, want an error with %q", name, names, problems, c.want)
		}
	}
}

func TestExpand(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"b.yaml", "a.json", "notes.txt", "sub/c.yml", "empty/readme"} {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		paths     []string
		recursive bool
		want      string
	}{
		"directory":      {[]string{"."}, false, "a.json,b.yaml"},
		"recursive":      {[]string{"."}, true, "a.json,b.yaml,sub/c.yml"},
		"file, as it is": {[]string{"notes.txt", "-"}, false, "notes.txt,-"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(dir)
			got, err := expand(c.paths, c.recursive)
			if diff := cmp.Diff(c.want, strings.Join(got, ",")); diff != "" || err != nil {
				t.Errorf("(-want +got): %s error: %v", diff, err)
			}
		})
	}
	for _, path := range []string{"missing.yaml", "empty"} {
		if got, err := expand([]string{filepath.Join(dir, path)}, false); err == nil {
			t.Errorf("%s: got %v, want an error", path, got)
		}
	}
}
