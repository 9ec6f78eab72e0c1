package texts

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"
)

// messages returns the messages in YAML documents, each once, in the order of the fields' names.
func messages(data []byte) ([]string, error) {
	var found []string
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		var document any
		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, err
		}
		look(document, func(text string) {
			text = strings.Join(strings.Fields(text), " ")
			if !slices.Contains(found, text) {
				found = append(found, text)
			}
		})
	}
}

// look hands over every message below a value.
func look(value any, see func(string)) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			look(item, see)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			text, is := value[key].(string)
			if is && (key == "message" || key == "messageExpression") {
				see(text)
				continue
			}
			look(value[key], see)
		}
	}
}
