package manifest

import (
	"strings"
	"testing"
)

func TestTheFieldThatWasMeant(t *testing.T) {
	const run = "apiVersion: rq.davidlangworthy.io/v1\nkind: Run\nmetadata: {name: a}\nspec: "
	for spec, want := range map[string]string{
		"{resources: {gpus: 8}}":                     "spec.resources.totalGPUs?",
		"{resources: {totalGpus: 8}}":                "spec.resources.totalGPUs?",
		"{gpuType: H100}":                            "spec.resources.gpuType?",
		"{owners: a}":                                "spec.owner?",
		"{runtime: {maxDurations: 1h}}":              "spec.runtime.maxDuration?",
		"{walltime: 1h}":                             "spec.runtime.maxDuration?",
		"{malleable: {min: 8}}":                      "spec.malleable.minTotalGPUs?",
		"{quux: 8}":                                  "",
		"{template: {spec: {containerz: []}}}":       "",
		"{metadata: {name: a}}":                      "metadata?",
		"{funding: {allowBorrow: true, sponsor: a}}": "spec.funding.sponsors?",
	} {
		_, err := Decode(document{file: "run.yaml", index: 1, text: []byte(run + spec)})
		if err == nil || !strings.Contains(err.Error(), "unknown field") {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		_, meant, asked := strings.Cut(err.Error(), "; did you mean ")
		if asked != (want != "") || meant != want {
			t.Errorf("%s: %v, want %q", spec, err, want)
		}
	}
}

func TestTheKindThatWasMeant(t *testing.T) {
	for head, want := range map[string]string{
		"apiVersion: rq.davidlangworthy.io/v1\nkind: run":          "did you mean kind Run of rq.davidlangworthy.io/v1?",
		"apiVersion: jobtree/v1\nkind: Run":                        "there is no kind Run of jobtree/v1; did you mean",
		"apiVersion: rq.davidlangworthy.io/v1beta1\nkind: Budgets": "did you mean kind Budget of",
		"apiVersion: coordination.k8s.io/v1\nkind: Lease":          "create it with \"kubectl create\"",
	} {
		_, err := Decode(document{file: "run.yaml", index: 1, text: []byte(head + "\nmetadata: {name: a}\n")})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", head, err, want)
		}
	}
}
