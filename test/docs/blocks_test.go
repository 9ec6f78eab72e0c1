package docs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	const markdown = "text\n```yaml file=a.yaml\nkind: Run\n```\n```\nplain\n```\n\n```console run\n$ date\n12:00:00 " +
		"now\n$ true\n```\n"
	blocks, err := parse(markdown)
	if err != nil {
		t.Fatal(err)
	}
	want := []block{
		{line: 3, language: "yaml", words: []string{"file=a.yaml"}, text: "kind: Run\n"},
		{line: 6, text: "plain\n"},
		{line: 10, language: "console", words: []string{"run"}, text: "$ date\n12:00:00 now\n$ true\n"},
	}
	if diff := cmp.Diff(want, blocks, cmp.AllowUnexported(block{})); diff != "" {
		t.Fatal(diff)
	}
	if blocks[0].file() != "a.yaml" || blocks[0].runs() || !blocks[2].runs() {
		t.Errorf("file %q, runs %v and %v", blocks[0].file(), blocks[0].runs(), blocks[2].runs())
	}
	steps := []step{{10, "date", "12:00:00 now\n"}, {12, "true", ""}}
	if diff := cmp.Diff(steps, blocks[2].session(), cmp.AllowUnexported(step{})); diff != "" {
		t.Error(diff)
	}
	if _, err := parse("```yaml\nkind: Run\n"); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a block without an end: %v", err)
	}
}

func TestCanonical(t *testing.T) {
	want := []string{"TIME rai/a Running TIME at TIME", "until TIME", "pod-5 a100s", "8 of 8 used, TIME spent"}
	got := canonical("12:30:01   rai/a   Running 2m30s at 14:05\n\nuntil 2030-01-02T03:04:05Z\npod-5  a100s\n8 of 8 " +
		"used, 0.02 GPU-hours spent\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPersonOf(t *testing.T) {
	got := personOf("# Page\n\n<!-- run as ann of rai, mm -->\n")
	if diff := cmp.Diff(&person{"ann", []string{"rai", "mm"}}, got, cmp.AllowUnexported(person{})); diff != "" {
		t.Error(diff)
	}
	if got := personOf("run as ann of rai\n"); got != nil {
		t.Errorf("nobody is named, and it is %v", got)
	}
	if b := (block{words: []string{"run", "admin"}}); !b.byAdmin() {
		t.Error("a block is not an administrator's")
	}
}

func TestUpOf(t *testing.T) {
	const sample = "manifests/samples/fleet.yaml"
	for markdown, want := range map[string]upWith{
		"```sh up\nmake up CONFIG=a/b.yaml\n```\n":                       {fleet: sample, config: "a/b.yaml"},
		"```sh up\nmake up FLEET=c.yaml CONFIG=a/b.yaml JOBSET=1\n```\n": {"c.yaml", "a/b.yaml", true},
		"```sh up\nmake up FLEET=c.yaml\n```\n":                          {fleet: "c.yaml"},
		"```sh up\nmake up\n```\n":                                       {fleet: sample},
		"```sh\nmake up CONFIG=a/b.yaml\n```\n":                          {fleet: sample},
	} {
		blocks, err := parse(markdown)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, upOf(blocks), cmp.AllowUnexported(upWith{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", markdown, diff)
		}
	}
}
