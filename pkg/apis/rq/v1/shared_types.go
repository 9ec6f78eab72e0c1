package v1

import "regexp"

// Owner names who spends and who pays: a colon-separated path such as org:ai:rai:sys.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
type Owner string

var ownerPath = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(:[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// IsOwner reports whether a text can be the name of an owner, as the API server takes it.
func IsOwner(text string) bool { return ownerPath.MatchString(text) }

// ACLEntry admits borrowers: an exact owner, or a prefix of one followed by `*`; `*` alone admits everybody (rule R4).
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=254
// +kubebuilder:validation:XValidation:rule=`self.matches('^([*]|[a-z0-9]([-a-z0-9:]*[a-z0-9])?|[a-z0-9][-a-z0-9:]*[*])$')`,message=`an entry is an owner such as org:ai:rai, the start of one followed by *, or * for everybody`
type ACLEntry string

// NamespacedName points at an object by name and namespace.
type NamespacedName struct {
	// name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// namespace of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Namespace string `json:"namespace"`
}

// Relation is what a payer is to the owner of a Run (rule R2).
//
// +kubebuilder:validation:Enum=own;sibling;ancestor;sponsor
type Relation string

// Values of Relation.
const (
	// RelationOwn envelopes are the owner's own.
	RelationOwn Relation = "own"
	// RelationSibling owners share a parent with the owner.
	RelationSibling Relation = "sibling"
	// RelationAncestor owners are parents of the owner, or of an ancestor.
	RelationAncestor Relation = "ancestor"
	// RelationSponsor owners are outside the family and lend to the owner.
	RelationSponsor Relation = "sponsor"
)
