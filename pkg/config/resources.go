package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// Resources are the extended resources that are counted as GPUs. A node has one of them.
type Resources []string

// UnmarshalJSON takes one name or a list of them. An empty name says what none says.
func (r *Resources) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*r = nil
		if one != "" {
			*r = Resources{one}
		}
		return nil
	}
	var list []string
	if json.Unmarshal(data, &list) != nil {
		return errors.New("gpuResource: must be the name of an extended resource, such as nvidia.com/gpu, or a list of " +
			"names, such as [nvidia.com/gpu, google.com/tpu]")
	}
	*r = list
	return nil
}

// MarshalJSON writes one of them as its name.
func (r Resources) MarshalJSON() ([]byte, error) {
	if len(r) == 1 {
		return json.Marshal(r[0])
	}
	return json.Marshal([]string(r))
}

// validate returns what is wrong with the names.
func (r Resources) validate(path *field.Path) (errs field.ErrorList) {
	if len(r) == 0 {
		errs = append(errs, field.Required(path, "name a resource, or leave it out for nvidia.com/gpu"))
	}
	for i, name := range r {
		at := path
		if len(r) > 1 {
			at = path.Index(i)
		}
		errs = append(errs, validateLabelKey(at, name)...)
		domain, _, extended := strings.Cut(name, "/")
		if !extended || strings.HasPrefix(domain, corev1.DefaultResourceRequestsPrefix) ||
			domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") {
			errs = append(errs, field.Invalid(at, name, "must be an extended resource such as nvidia.com/gpu"))
		}
		if slices.Contains(r[:i], name) {
			errs = append(errs, field.Duplicate(at, name))
		}
	}
	return errs
}

// Counts reports whether a resource is one of them.
func (r Resources) Counts(resource corev1.ResourceName) bool {
	return slices.Contains(r, string(resource))
}

// Sum returns how many there are in a list, of all of them together.
func (r Resources) Sum(of corev1.ResourceList) int {
	sum := 0
	for _, name := range r {
		sum += rank.Count(of[corev1.ResourceName(name)])
	}
	return sum
}

// On returns the one that a node has, whether its devices are well or not; empty where it has none, and several in
// words, which is none of them, where it has more.
func (r Resources) On(node *corev1.Node) string {
	found := ""
	for _, name := range r {
		capacity := node.Status.Capacity[corev1.ResourceName(name)]
		allocatable := node.Status.Allocatable[corev1.ResourceName(name)]
		switch {
		case capacity.IsZero() && allocatable.IsZero():
		case found == "":
			found = name
		default:
			found = fmt.Sprintf("%s and %s", found, name)
		}
	}
	return found
}

// NamedIn reports whether a text names one of them.
func (r Resources) NamedIn(text string) bool {
	return slices.ContainsFunc(r, func(name string) bool { return strings.Contains(text, name) })
}
