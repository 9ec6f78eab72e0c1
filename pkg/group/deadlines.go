package group

import (
	"fmt"
	"maps"
	"slices"
)

// Deadline is where an object says how long its Jobs may take, their wait included.
type Deadline struct {
	Path    string
	Seconds int64
}

// Deadlines returns those of an object's Jobs, in order of their paths: Kubernetes fails a Job at such a time after its
// creation, whether or not it has run.
func Deadlines(object map[string]any) []Deadline { return deadlinesIn(object, "", false) }

func deadlinesIn(in map[string]any, path string, policy bool) (out []Deadline) {
	const key = "activeDeadlineSeconds"
	_, makesPods := in["template"] // a pod's own is about its run alone
	_, makesCluster := in["rayClusterSpec"]
	seconds, says := in[key].(int64)
	if says && (makesPods || makesCluster || policy) {
		out = append(out, Deadline{path + key, seconds})
	}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		switch value := in[name].(type) {
		case map[string]any:
			out = append(out, deadlinesIn(value, path+name+".", name == "runPolicy")...)
		case []any:
			for i, item := range value {
				if of, isMap := item.(map[string]any); isMap {
					out = append(out, deadlinesIn(of, fmt.Sprintf("%s%s[%d].", path, name, i), false)...)
				}
			}
		}
	}
	return out
}
