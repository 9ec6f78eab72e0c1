package controllers

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// nameTaken is the error for a name that something else has.
type nameTaken struct{ what, name string }

func (e nameTaken) Error() string {
	return fmt.Sprintf("%s %s exists and is not this Run's; delete it, or give the Run another name", e.what, e.name)
}

// belongs returns nil if the object that has a name already is the same Run's.
func belongs(what string, wanted metav1.Object, get func() (metav1.Object, error)) error {
	got, err := get()
	if err != nil {
		return ignore(err, apierrors.IsNotFound)
	}
	run, _ := rank.RunOf(wanted)
	if made, ok := rank.RunOf(got); !ok || made != run {
		return nameTaken{what, wanted.GetName()}
	}
	return nil
}
