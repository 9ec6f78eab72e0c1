package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// strict refuses fields that our types do not have and fields that are given twice.
var strict = kjson.NewSerializerWithOptions(kjson.DefaultMetaFactory, session.Ours, session.Ours,
	kjson.SerializerOptions{Strict: true})

// Decode returns the objects of a document as they were written, after checking them against our types. A List gives
// its items, an empty document nothing. The error names every field at fault.
func Decode(d document) ([]*unstructured.Unstructured, error) { return decode(d, false) }

// decode decodes a document. Objects of other kinds are left for the server to check, if any kind will do.
func decode(d document, anyKind bool) ([]*unstructured.Unstructured, error) {
	text := d.text
	if !d.json {
		var err error
		if text, err = yaml.YAMLToJSONStrict(text); err != nil {
			return nil, errors.New(cleanYAMLError(err))
		}
	}
	if string(text) == "null" {
		return nil, nil
	}
	var kind metav1.TypeMeta
	if err := json.Unmarshal(text, &kind); err != nil {
		return nil, errors.New("not an API object: want a map with apiVersion and kind")
	}
	if strings.HasSuffix(kind.Kind, "List") {
		return decodeList(text, kind, anyKind)
	}
	object, err := decodeObject(text, nil, anyKind)
	if err != nil {
		return nil, err
	}
	return []*unstructured.Unstructured{object}, nil
}

// decodeList decodes the items of a v1 List, or of a list of one of our kinds, whose items may leave out their kind.
func decodeList(text []byte, kind metav1.TypeMeta, anyKind bool) ([]*unstructured.Unstructured, error) {
	var list struct {
		metav1.TypeMeta
		metav1.ListMeta `json:"metadata"`
		Items           []json.RawMessage `json:"items"`
	}
	problems, err := sigsjson.UnmarshalStrict(text, &list)
	if err = errors.Join(append(problems, err)...); err != nil {
		return nil, inField(err)
	}
	var of *schema.GroupVersionKind
	if kind.Kind != "List" {
		gvk := schema.FromAPIVersionAndKind(kind.APIVersion, strings.TrimSuffix(kind.Kind, "List"))
		of = &gvk
	}
	var objects []*unstructured.Unstructured
	for i, item := range list.Items {
		object, err := decodeObject(item, of, anyKind)
		if err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// decodeObject checks one object in JSON against our types. The kind, when given, is that of an object that states
// none.
func decodeObject(text []byte, kind *schema.GroupVersionKind, anyKind bool) (*unstructured.Unstructured, error) {
	_, gvk, err := strict.Decode(text, kind, nil)
	switch {
	case runtime.IsMissingKind(err):
		return nil, errors.New(`field "kind" is missing`)
	case runtime.IsMissingVersion(err):
		return nil, errors.New(`field "apiVersion" is missing`)
	case runtime.IsNotRegisteredError(err) && anyKind:
	case runtime.IsNotRegisteredError(err):
		return nil, notOurKind(gvk)
	case runtime.IsStrictDecodingError(err) || isMismatch(err):
		return nil, inFieldOf(err, gvk)
	case gvk == nil: // the apiVersion cannot be read
		return nil, err
	}
	// Whatever else is wrong, such as a duration that is none, the server says, and where.
	object := &unstructured.Unstructured{}
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(text, &object.Object); err != nil {
		return nil, err
	}
	object.SetGroupVersionKind(*gvk)
	inHours(object)
	if object.GetName() == "" && object.GetGenerateName() == "" {
		return nil, errors.New(`field "metadata.name" is missing`)
	}
	return object, nil
}

// isMismatch reports whether a value is of another type than its field.
func isMismatch(err error) bool {
	var mismatch *json.UnmarshalTypeError
	return errors.As(err, &mismatch)
}

// inField puts a decoder's error into words, with the field first when it is known.
func inField(err error) error { return inFieldOf(err, nil) }

// inFieldOf does likewise for an object of a kind, and says which field was perhaps meant.
func inFieldOf(err error, kind *schema.GroupVersionKind) error {
	if list, ok := runtime.AsStrictDecodingError(err); ok {
		err = errors.Join(list.Errors()...)
	}
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) && mismatch.Field != "" {
		return fmt.Errorf("field %q: want %s, not %s", mismatch.Field, wanted(mismatch.Type), given(mismatch.Value))
	}
	lines := strings.Split(strings.TrimPrefix(err.Error(), "json: "), "\n")
	for i := range lines {
		lines[i] = withMeant(lines[i], kind)
	}
	return errors.New(strings.Join(lines, "; "))
}

// given puts encoding/json's description of a value into the words of wanted.
func given(value string) string {
	switch value {
	case "array":
		return "a list"
	case "object":
		return "a map"
	case "bool":
		return "true or false"
	case "number", "string":
		return "a " + value
	}
	return strings.TrimPrefix(value, "number ")
}

// wanted names a type of our API.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int32:
		return fmt.Sprintf("a whole number of at most %d", math.MaxInt32)
	case reflect.Int64:
		return "a whole number"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "a map"
	}
	return "a " + t.Kind().String()
}

// cleanYAMLError takes the parser's own words out of its error, which names lines and keys.
func cleanYAMLError(err error) string {
	message := strings.NewReplacer("error converting YAML to JSON: ", "", "yaml: unmarshal errors:\n", "", "yaml: ",
		"").Replace(err.Error())
	lines := strings.Split(message, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "; ")
}
