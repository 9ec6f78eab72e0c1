package watch

import (
	"bytes"
	"encoding/json"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// sighting is what a program learns beside the Run: its open GPU leases, and what has befallen some since the last
// time.
type sighting struct {
	Time    metav1.Time      `json:"time"`
	Leases  *view.Tally      `json:"leases,omitempty"` // nil when they cannot be read
	Changes []view.Happening `json:"changes,omitempty"`
}

// printSighting prints a Run as the API has it, with what was seen of it under watch.
func printSighting(printer printers.ResourcePrinter, out io.Writer, run *rqv1.Run, seen sighting) error {
	object, err := session.AsWritten(run)
	if err != nil {
		return err
	}
	object.Object["watch"], err = runtime.DefaultUnstructuredConverter.ToUnstructured(&seen)
	if err != nil {
		return err
	}
	return printer.PrintObj(object, out)
}

// onOneLine prints JSON on one line for each object.
func onOneLine(printer printers.ResourcePrinter) printers.ResourcePrinter {
	return printers.ResourcePrinterFunc(func(object runtime.Object, out io.Writer) error {
		var spaced, line bytes.Buffer
		if err := printer.PrintObj(object, &spaced); err != nil {
			return err
		}
		if err := json.Compact(&line, spaced.Bytes()); err != nil {
			return err
		}
		line.WriteByte('\n')
		_, err := out.Write(line.Bytes())
		return err
	})
}
