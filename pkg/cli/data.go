package cli

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// templates are the formats that a template follows.
const templates = "jsonpath=TEMPLATE, go-template=TEMPLATE"

// answer is what a command prints that is no object of the API: to kubectl's printers it is one all the same.
type answer struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	data any
}

// MarshalJSON leaves the data alone.
func (a *answer) MarshalJSON() ([]byte, error) { return json.Marshal(a.data) }

// DeepCopyObject returns the answer itself, which nobody changes.
func (a *answer) DeepCopyObject() runtime.Object { return a }

// about names an object of one of jobtree's kinds that an answer is about, for -o name.
func about(kind, name string) *answer {
	return &answer{TypeMeta: metav1.TypeMeta{APIVersion: rqv1.GroupVersion.String(), Kind: kind}, ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// aboutCore names an object of Kubernetes' own core.
func aboutCore(kind, name string) *answer {
	object := about(kind, name)
	object.APIVersion = "v1"
	return object
}

// newAnswerOutput returns the -o flag of a command that answers with data of its own rather than with API objects.
func newAnswerOutput(cmd *cobra.Command, formats string) *output {
	o := newOutput(cmd, "", formats+", "+templates)
	cmd.Flags().Lookup("show-managed-fields").Hidden = true
	return o
}

// printData prints data in a format for programs, or the names of the objects that it is about.
func (o *output) printData(out io.Writer, data any, about ...*answer) error {
	printer, err := o.printer()
	if err != nil {
		return err
	}
	if !o.is("name") {
		return printer.PrintObj(&answer{TypeMeta: metav1.TypeMeta{APIVersion: rqv1.GroupVersion.String(), Kind: "Answer"}, data: data}, out)
	}
	for _, object := range about {
		if err := printer.PrintObj(object, out); err != nil {
			return err
		}
	}
	return nil
}
