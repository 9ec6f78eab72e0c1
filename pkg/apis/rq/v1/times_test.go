package v1_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

// instants returns the schemas of instants in the CustomResourceDefinitions by their paths. What only the API server and its own
// libraries write, as the times of conditions, has no pattern and is left out.
func instants(t testing.TB) map[string]*regexp.Regexp {
	t.Helper()
	files, err := filepath.Glob("../../../../manifests/crd/rq.*.yaml")
	if err != nil || len(files) != 4 {
		t.Fatalf("the CustomResourceDefinitions: %v, %v", files, err)
	}
	out := map[string]*regexp.Regexp{}
	var walk func(path string, node any)
	walk = func(path string, node any) {
		switch node := node.(type) {
		case map[string]any:
			if pattern, ok := node["pattern"].(string); ok && node["format"] == "date-time" {
				out[path] = regexp.MustCompile(pattern)
			}
			for key, child := range node {
				walk(path+"."+key, child)
			}
		case []any:
			for _, child := range node {
				walk(path, child)
			}
		}
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := map[string]any{}
		if err := yaml.Unmarshal(data, &crd); err != nil {
			t.Fatal(err)
		}
		walk(filepath.Base(file), crd["spec"])
	}
	if len(out) < 7 {
		t.Fatalf("only %d instants in the CustomResourceDefinitions", len(out))
	}
	return out
}

// decodes reports whether Go reads an instant back as it would be written: as the type that the pattern is for.
func decodes(pattern *regexp.Regexp, text string) error {
	quoted, err := json.Marshal(text)
	if err != nil {
		return err
	}
	if strings.Contains(pattern.String(), "{6}") {
		return json.Unmarshal(quoted, &metav1.MicroTime{})
	}
	return json.Unmarshal(quoted, &metav1.Time{})
}

// TestStoredInstantsDecode compares what the API server lets in with what Go decodes: one object that does not decode keeps
// the scheduler, and everybody else, from listing any of its kind.
func TestStoredInstantsDecode(t *testing.T) {
	for path, pattern := range instants(t) {
		accepts := func(text string) bool { return pattern.MatchString(text) && strfmt.IsDateTime(text) }
		for _, text := range []string{
			"2027-01-01T00:00:00+30:00", "2027-01-01T00:00:00.000000+30:00", "2027-01-01T00:00:00+12:60", "2027-01-01T00:00:60Z",
			"2027-01-01T24:00:00Z", "2027-01-01t00:00:00z", "2027-01-01T00:00:00,5Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59-23:00",
			"2027-02-29T00:00:00Z", "2027-01-01T00:00:00.0000000001Z", "2027-01-01T00:00:00", "2027-01-01T00:00:00+24:00",
		} {
			if accepts(text) {
				t.Errorf("%s: %s is let in", path, text)
			}
		}
		fraction := ""
		if strings.Contains(pattern.String(), "{6}") {
			fraction = ".123456"
		}
		for _, text := range []string{"2027-12-31T23:59:59" + fraction + "Z", "2028-02-29T00:00:00" + fraction + "+14:00", "2027-01-01T00:00:00" + fraction + "-23:59"} {
			if !accepts(text) {
				t.Errorf("%s: %s is refused", path, text)
			}
		}
		digits := func(n int) *rapid.Generator[string] {
			return rapid.Custom(func(t *rapid.T) string {
				text := "00000" + rapid.StringMatching(`[0-9]{1,5}`).Draw(t, "digits")
				if rapid.Bool().Draw(t, "plausible") {
					text = "0000" + rapid.SampledFrom([]string{"1", "12", "23", "24", "28", "29", "30", "31", "59", "60", "1970", "2028"}).Draw(t, "number")
				}
				return text[len(text)-n:]
			})
		}
		t.Run(path, rapid.MakeCheck(func(t *rapid.T) {
			two := digits(2)
			text := digits(4).Draw(t, "year") + "-" + two.Draw(t, "month") + "-" + two.Draw(t, "day") + rapid.SampledFrom([]string{"T", "t", " "}).Draw(t, "T") +
				two.Draw(t, "hour") + ":" + two.Draw(t, "minute") + ":" + two.Draw(t, "second") +
				rapid.SampledFrom([]string{"", ".", ".000000", ".5", ".123456", ".999999999", ".0000000000", ",5"}).Draw(t, "fraction") +
				rapid.OneOf(rapid.Just("Z"), rapid.Just("z"), rapid.Just(""), rapid.Custom(func(t *rapid.T) string {
					return rapid.SampledFrom([]string{"+", "-"}).Draw(t, "sign") + two.Draw(t, "hours") + ":" + two.Draw(t, "minutes")
				})).Draw(t, "offset")
			if err := decodes(pattern, text); accepts(text) && err != nil {
				t.Fatalf("%s: %s is stored and does not decode: %v", path, text, err)
			}
		}))
	}
}
