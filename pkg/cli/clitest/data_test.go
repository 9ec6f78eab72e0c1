package clitest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

func TestAnswersInEveryFormat(t *testing.T) {
	data := struct {
		Short int      `json:"shortGPUs"`
		Of    []string `json:"of"`
	}{8, []string{"a", "b"}}
	for format, want := range map[string]string{
		"name":                            "run.rq.davidlangworthy.io/big\nnode/n1\n",
		"yaml":                            "of:\n- a\n- b\nshortGPUs: 8\n",
		"jsonpath={.of[1]}":               "b",
		"go-template={{.shortGPUs}} GPUs": "8 GPUs",
	} {
		var text strings.Builder
		if err := InFormat(format, &text, data, session.About("Run", "big"), session.AboutCore("Node", "n1")); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, text.String()); diff != "" {
			t.Errorf("-o %s (-want +got):\n%s", format, diff)
		}
	}
}
