package controlplane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadFleet(t *testing.T) {
	tests := []struct {
		name, yaml string
		want       []string
		wantError  string
	}{
		{name: "nothing", yaml: "# no nodes\n"},
		{name: "documents", yaml: testFleet, want: []string{"played", "absent"}},
		{name: "list", yaml: "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: a}}\n",
			want: []string{"a"}},
		{name: "json", yaml: `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}`, want: []string{"a"}},
		{name: "other kind", yaml: testFleet + "---\napiVersion: v1\nkind: Pod\n",
			wantError: "document 3: v1 Pod is not a Node"},
		{name: "other kind in a list", yaml: "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: " +
			"{name: a}}\n", wantError: "Pod a is not a Node"},
		{name: "unknown field", yaml: "apiVersion: v1\nkind: Node\nspecs: {}\n", wantError: `unknown field "specs"`},
		{name: "duplicate field", yaml: "apiVersion: v1\nkind: Node\nkind: Node\n", wantError: `key "kind" already set`},
		{name: "no YAML", yaml: "apiVersion: [", wantError: "document 1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "fleet.yaml")
			if err := os.WriteFile(file, []byte(test.yaml), 0o644); err != nil {
				t.Fatal(err)
			}
			nodes, err := ReadFleet(file)
			if test.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantError) {
					t.Fatalf("error %v, want %q", err, test.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, node := range nodes {
				got = append(got, node.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSampleFleet(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := ReadFleet(filepath.Join(root, "manifests", "samples", "fleet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, node := range nodes {
		gpus := node.Status.Allocatable["nvidia.com/gpu"]
		got[strings.Join([]string{node.Labels["region"], node.Labels["cluster"], node.Labels["fabric.domain"],
			node.Labels["gpu.flavor"]}, "/")] += gpus.Value()
	}
	want := map[string]int64{
		"us-west/gpu-a/A/H100-80GB": 32, "us-west/gpu-a/B/H100-80GB": 32,
		"us-east/gpu-b/C/H100-80GB": 32, "us-east/gpu-b/D/H100-80GB": 32,
		"///": 0, "us-east///": 0, "us-east///T4": 4,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
