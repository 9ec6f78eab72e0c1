package v1_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// FuzzInstants: an instant that the schema takes is one that Go decodes. Otherwise one object that somebody has written would
// keep everybody from listing its kind.
func FuzzInstants(f *testing.F) {
	patterns := instants(f)
	f.Fuzz(func(t *testing.T, text string) {
		for path, pattern := range patterns {
			if err := decodes(pattern, text); pattern.MatchString(text) && strfmt.IsDateTime(text) && err != nil {
				t.Errorf("%s takes %q: %v", path, text, err)
			}
		}
	})
}

// FuzzDurations: likewise a duration.
func FuzzDurations(f *testing.F) {
	patterns := written(f, `self\.matches\('(\^\(\[0-9\]\{1,6\}[^']*)'\)`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, pattern := range patterns {
			if text == "" || !pattern.MatchString(text) {
				continue
			}
			if err := new(metav1.Duration).UnmarshalJSON([]byte(`"` + text + `"`)); err != nil {
				t.Errorf("the schema takes %q: %v", text, err)
			}
		}
	})
}

// written are the patterns in the CustomResourceDefinitions that an expression finds, each once.
func written(f *testing.F, expression string) []*regexp.Regexp {
	files, err := filepath.Glob("../../../../manifests/crd/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	var out []*regexp.Regexp
	seen := map[string]bool{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, found := range regexp.MustCompile(expression).FindAllSubmatch(data, -1) {
			if text := string(found[1]); !seen[text] {
				seen[text] = true
				out = append(out, regexp.MustCompile(text))
			}
		}
	}
	if len(out) == 0 {
		f.Fatalf("no CustomResourceDefinition has a pattern like %s", expression)
	}
	return out
}
