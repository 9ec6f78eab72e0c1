package group

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// MadeFor identifies what a controller reference in a namespace names.
func MadeFor(namespace string, ref *metav1.OwnerReference) Key {
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	return Key{namespace, gvk.Group, gvk.Kind, ref.Name}
}

// SayMadeFor returns what annotation made-for of a Run says: what its group was made for.
func SayMadeFor(keys []Key) string {
	var out []string
	for _, k := range keys {
		out = append(out, strings.TrimSuffix(k.Kind+"."+k.API, ".")+"/"+k.Name)
	}
	return strings.Join(out, ",")
}

// WasMadeFor returns what the group of a Run was made for, by the Run's annotation.
func WasMadeFor(run *rqv1.Run) (out []Key) {
	for _, word := range strings.Split(run.Annotations[rqv1.AnnotationMadeFor], ",") {
		kind, name, ok := strings.Cut(word, "/")
		kind, api, _ := strings.Cut(kind, ".")
		if _, stands := KeyOf(run); ok && stands {
			out = append(out, Key{run.Namespace, api, kind, name})
		}
	}
	return out
}

// Names reports whether a reference may name an object that there is: whoever makes a pod may write anything into one,
// of any length, and what it names is asked for, and told.
func Names(by *metav1.OwnerReference) bool {
	return len(by.Name) <= longestObjectName && len(by.Kind) <= longestKind && len(by.APIVersion) <= longestObjectName &&
		len(path.IsValidPathSegmentName(by.Name)) == 0
}

// longestKind is how long the name of a kind may be.
const longestKind = 63
