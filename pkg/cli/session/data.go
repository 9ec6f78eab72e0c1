package session

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

// Answer is what a command prints that is no object of the API: to kubectl's printers it is one all the same.
type Answer struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	data any
}

// MarshalJSON leaves the data alone.
func (a *Answer) MarshalJSON() ([]byte, error) { return json.Marshal(a.data) }

// DeepCopyObject returns the answer itself, which nobody changes.
func (a *Answer) DeepCopyObject() runtime.Object { return a }

// About names an object of one of jobtree's kinds that an answer is about, for -o name.
func About(kind, name string) *Answer {
	return &Answer{TypeMeta: metav1.TypeMeta{APIVersion: rqv1.GroupVersion.String(), Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// AboutCore names an object of Kubernetes' own core.
func AboutCore(kind, name string) *Answer {
	object := About(kind, name)
	object.APIVersion = "v1"
	return object
}

// NewAnswerOutput returns the -o flag of a command that answers with data of its own rather than with API objects.
func NewAnswerOutput(cmd *cobra.Command, formats string) *Output {
	o := NewOutput(cmd, "", formats+", "+templates)
	cmd.Flags().Lookup("show-managed-fields").Hidden = true
	return o
}

// PrintData prints data in a format for programs, or the names of the objects that it is about.
func (o *Output) PrintData(out io.Writer, data any, about ...*Answer) error {
	printer, err := o.Printer()
	if err != nil {
		return err
	}
	if !o.Is("name") {
		return printer.PrintObj(&Answer{TypeMeta: metav1.TypeMeta{APIVersion: rqv1.GroupVersion.String(), Kind: "Answer"},
			data: data}, out)
	}
	for _, object := range about {
		if err := printer.PrintObj(object, out); err != nil {
			return err
		}
	}
	return nil
}
