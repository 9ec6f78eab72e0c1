package group

import (
	"fmt"
	"testing"

	"sigs.k8s.io/yaml"
)

// Jobs' times count while they wait, wherever an object says them; a pod's own counts while it runs.
func TestDeadlinesOfWhatWaits(t *testing.T) {
	const pods = "template: {spec: {activeDeadlineSeconds: 5}}"
	for text, want := range map[string]string{
		"{spec: {activeDeadlineSeconds: 6, " + pods + "}}":   "[{spec.activeDeadlineSeconds 6}]",
		"{spec: {" + pods + "}}":                             "[]",
		"{spec: {activeDeadlineSeconds: 5, containers: []}}": "[]",
		"{spec: {jobTemplate: {spec: {activeDeadlineSeconds: 6, " + pods + "}}}}": "[{spec.jobTemplate.spec." +
			"activeDeadlineSeconds 6}]",
		"{spec: {runPolicy: {activeDeadlineSeconds: 6}}}": "[{spec.runPolicy.activeDeadlineSeconds 6}]",
		"{spec: {activeDeadlineSeconds: 6, rayClusterSpec: {headGroupSpec: {" + pods + "}}}}": "[{spec." +
			"activeDeadlineSeconds 6}]",
		"{spec: {replicatedJobs: [{name: a}, {template: {spec: {activeDeadlineSeconds: 6, " + pods + "}}}]}}": "[{spec." +
			"replicatedJobs[1].template.spec.activeDeadlineSeconds 6}]",
	} {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(Deadlines(inIntegers(object).(map[string]any))); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// inIntegers has numbers be as the API's decoder reads them.
func inIntegers(value any) any {
	switch is := value.(type) {
	case map[string]any:
		for key, item := range is {
			is[key] = inIntegers(item)
		}
	case []any:
		for i, item := range is {
			is[i] = inIntegers(item)
		}
	case float64:
		return int64(is)
	}
	return value
}
