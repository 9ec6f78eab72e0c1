// Package manifest reads objects from files.
package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// blame finds the field that a decoder's error is about when the error does not name it, as those of durations,
// instants and quantities do not: it is the first one without which the error is another or none. It is empty when
// the error names its field, or no field is at fault.
func blame(text []byte, kind *schema.GroupVersionKind, err error) string {
	var mismatch *json.UnmarshalTypeError
	if runtime.IsStrictDecodingError(err) || errors.As(err, &mismatch) {
		return ""
	}
	var object map[string]any
	if json.Unmarshal(text, &object) != nil {
		return ""
	}
	innocent := func() bool {
		without, encodeErr := json.Marshal(object)
		if encodeErr != nil {
			return false
		}
		_, _, other := strict.Decode(without, kind, nil)
		return other == nil || other.Error() != err.Error()
	}
	return blameIn(object, "", innocent)
}

// blameIn tries the fields of a map, deepest first, in alphabetical order. It leaves the map as it was.
func blameIn(fields map[string]any, prefix string, innocent func() bool) string {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value := fields[name]
		if path := blameBelow(value, prefix+name, innocent); path != "" {
			return path
		}
		if prefix == "" && (name == "apiVersion" || name == "kind") {
			continue
		}
		delete(fields, name)
		found := innocent()
		fields[name] = value
		if found {
			return prefix + name
		}
	}
	return ""
}

func blameBelow(value any, path string, innocent func() bool) string {
	switch below := value.(type) {
	case map[string]any:
		return blameIn(below, path+".", innocent)
	case []any:
		for i, item := range below {
			if found := blameBelow(item, fmt.Sprintf("%s[%d]", path, i), innocent); found != "" {
				return found
			}
		}
	}
	return ""
}
