package manifest

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// meantBy is what people mean by names that are not those of fields, and like none of them.
var meantBy = map[string]string{
	"gpus": "totalGPUs", "gpu": "totalGPUs", "count": "totalGPUs", "flavor": "gpuType", "type": "gpuType",
	"time": "maxDuration", "timeLimit": "maxDuration", "walltime": "maxDuration", "containers": "template",
	"priority": "priorityClassName", "account": "owner", "requeue": "onTimeout",
}

// unknownField is how a decoder names a field that our types do not have.
var unknownField = regexp.MustCompile(`^unknown field "([^"]+)"$`)

// withMeant adds to a decoder's words about an unknown field of a kind which field was perhaps meant.
func withMeant(words string, kind *schema.GroupVersionKind) string {
	match := unknownField.FindStringSubmatch(words)
	if match == nil || kind == nil {
		return words
	}
	object, err := session.Ours.New(*kind)
	if err != nil {
		return words
	}
	path := strings.Split(match[1], ".")
	parent, last := path[:len(path)-1], path[len(path)-1]
	known := fieldsOf(reflect.TypeOf(object).Elem())
	var beside []string
	for _, field := range known {
		if slices.Equal(field[:len(field)-1], parent) {
			beside = append(beside, field[len(field)-1])
		}
	}
	name := meantBy[last]
	if nearest := session.Nearest(last, beside); nearest != "" && name == "" {
		return words + "; did you mean " + strings.Join(append(parent, nearest), ".") + "?"
	}
	for _, field := range known { // one of another place
		if own := field[len(field)-1]; strings.EqualFold(own, last) || own == name {
			return words + "; did you mean " + strings.Join(field, ".") + "?"
		}
	}
	return words
}

// notOurKind says what to do with an object of a kind that is not jobtree's, or that is meant to be.
func notOurKind(gvk *schema.GroupVersionKind) error {
	for _, kind := range []string{"Run", "Budget"} {
		if strings.EqualFold(gvk.Kind, kind) || strings.EqualFold(gvk.Kind, kind+"s") {
			return fmt.Errorf("there is no kind %s of %s; did you mean kind %s of %s?", gvk.Kind, gvk.GroupVersion(), kind,
				rqv1.GroupVersion)
		}
	}
	return fmt.Errorf("kind %s of %s is not one of jobtree's kinds; create it with \"kubectl create\"", gvk.Kind,
		gvk.GroupVersion())
}

// notOurs are types whose fields are Kubernetes' own to explain, or that are written as text.
var notOurs = []reflect.Type{reflect.TypeFor[corev1.PodTemplateSpec](), reflect.TypeFor[metav1.ObjectMeta](),
	reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](), reflect.TypeFor[metav1.Duration](),
	reflect.TypeFor[metav1.Condition]()}

// fieldsOf are the paths of all fields of a type, as people write them: those of lists without an index, and none of a
// status, which nobody writes.
func fieldsOf(t reflect.Type) (paths [][]string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || slices.Contains(notOurs, t) {
		return nil
	}
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case strings.Contains(options, "inline"):
			paths = append(paths, fieldsOf(field.Type)...)
		case name != "" && name != "status":
			paths = append(paths, []string{name})
			for _, below := range fieldsOf(field.Type) {
				paths = append(paths, append([]string{name}, below...))
			}
		}
	}
	return paths
}
