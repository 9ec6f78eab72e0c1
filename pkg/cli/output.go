package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// output is the -o flag: kubectl's formats, and text for people by default.
type output struct {
	flags   *genericclioptions.PrintFlags
	formats string
}

// newOutput returns the -o flag of a command. The operation, if any, is what -o's absence prints of a written object.
func newOutput(cmd *cobra.Command, operation, formats string) *output {
	o := &output{flags: genericclioptions.NewPrintFlags(operation), formats: formats}
	o.flags.AddFlags(cmd)
	cmd.Flags().Lookup("output").Usage = "Output format: one of " + formats + "."
	for _, name := range []string{"template", "allow-missing-template-keys"} {
		cmd.Flags().Lookup(name).Hidden = true
	}
	completeFormats(cmd, formats)
	return o
}

// completeFormats completes the -o flag with those of some formats that need nothing after their name.
func completeFormats(cmd *cobra.Command, formats string) {
	var words []string
	for _, format := range strings.Split(formats, ", ") {
		if word, _, _ := strings.Cut(format, " "); !strings.Contains(word, "=") {
			words = append(words, word)
		}
	}
	must(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)))
}

func (o *output) wide() bool { return o.is("wide") }

func (o *output) is(format string) bool { return *o.flags.OutputFormat == format }

// forPeople is true unless a format for programs is asked for.
func (o *output) forPeople() bool {
	return *o.flags.OutputFormat == "" && *o.flags.TemplatePrinterFlags.TemplateArgument == "" || o.wide()
}

// printer returns the printer of a format for programs.
func (o *output) printer() (printers.ResourcePrinter, error) {
	printer, err := o.flags.ToPrinter()
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		return nil, fail(exitUsage, "--output %q is no format of this command; choose from %s", *o.flags.OutputFormat, o.formats)
	}
	if err != nil {
		return nil, fail(exitUsage, "--output: %v", err)
	}
	return printer, nil
}

// check refuses an unknown format before anything is asked of the server.
func (o *output) check() error {
	if o.forPeople() {
		return nil
	}
	_, err := o.printer()
	return err
}

// printList prints objects as kubectl does: in a v1 List.
func (o *output) printList(objects []client.Object, out io.Writer) error {
	printer, err := o.printer()
	if err != nil {
		return err
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "List",
		"metadata":   map[string]any{"resourceVersion": ""},
	}}
	for _, object := range objects {
		item, err := asWritten(object)
		if err != nil {
			return err
		}
		list.Items = append(list.Items, *item)
	}
	return printer.PrintObj(list, out)
}

// asWritten returns a typed object with the apiVersion and kind that typed clients leave out.
func asWritten(object client.Object) (*unstructured.Unstructured, error) {
	gvk, err := apiutil.GVKForObject(object, known)
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	item := &unstructured.Unstructured{Object: content}
	item.SetGroupVersionKind(gvk)
	return item, nil
}

// printTable prints a table for people. Columns of priority 1 are shown when wide is set.
func printTable(table *metav1.Table, out io.Writer, wide, withNamespace bool) error {
	return printers.NewTablePrinter(printers.PrintOptions{Wide: wide, WithNamespace: withNamespace}).PrintObj(table, out)
}

// columns makes a table's header; names of columns that only the wide format shows start with "+".
func columns(names ...string) []metav1.TableColumnDefinition {
	definitions := make([]metav1.TableColumnDefinition, len(names))
	for i, name := range names {
		definitions[i] = metav1.TableColumnDefinition{Name: name, Type: "string"}
		if name[0] == '+' {
			definitions[i].Name, definitions[i].Priority = name[1:], 1
		}
	}
	return definitions
}

// row makes a table's row of an object; empty cells become "-".
func row(object runtime.Object, cells ...string) metav1.TableRow {
	r := metav1.TableRow{Object: runtime.RawExtension{Object: object}}
	for _, cell := range cells {
		if cell == "" {
			cell = "-"
		}
		r.Cells = append(r.Cells, cell)
	}
	return r
}

// must is for mistakes in this package's own flag names.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
