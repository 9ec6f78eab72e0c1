package session

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Output is the -o flag: kubectl's formats, and text for people by default.
type Output struct {
	Flags   *genericclioptions.PrintFlags
	formats string
}

// NewOutput returns the -o flag of a command. The operation, if any, is what -o's absence prints of a written object.
func NewOutput(cmd *cobra.Command, operation, formats string) *Output {
	o := &Output{Flags: genericclioptions.NewPrintFlags(operation), formats: formats}
	o.Flags.AddFlags(cmd)
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
	Must(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)))
}

// Wide is true when people ask for all there is.
func (o *Output) Wide() bool { return o.Is("wide") }

// Is is true of the format that -o asks for.
func (o *Output) Is(format string) bool { return *o.Flags.OutputFormat == format }

// ForPeople is true unless a format for programs is asked for.
func (o *Output) ForPeople() bool {
	return *o.Flags.OutputFormat == "" && *o.Flags.TemplatePrinterFlags.TemplateArgument == "" || o.Wide()
}

// Printer returns the printer of a format for programs.
func (o *Output) Printer() (printers.ResourcePrinter, error) {
	printer, err := o.Flags.ToPrinter()
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		return nil, Fail(ExitUsage, "--output %q is not a format of this command; choose from %s", *o.Flags.OutputFormat,
			o.formats)
	}
	if err != nil {
		return nil, Fail(ExitUsage, "--output: %v", err)
	}
	return printer, nil
}

// Check refuses an unknown format before anything is asked of the server.
func (o *Output) Check() error {
	if o.ForPeople() {
		return nil
	}
	_, err := o.Printer()
	return err
}

// PrintList prints objects as kubectl does: in a v1 List.
func (o *Output) PrintList(objects []client.Object, out io.Writer) error {
	printer, err := o.Printer()
	if err != nil {
		return err
	}
	if o.Is("json") {
		return printJSON(objects, printer, out)
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "List",
		"metadata":   map[string]any{"resourceVersion": ""},
	}}
	for _, object := range objects {
		item, err := AsWritten(object)
		if err != nil {
			return err
		}
		list.Items = append(list.Items, *item)
	}
	return printer.PrintObj(list, out)
}

// printJSON prints objects as PrintList does. There may be thousands: each is encoded once, and not taken apart before.
func printJSON(objects []client.Object, printer printers.ResourcePrinter, out io.Writer) error {
	for _, object := range objects {
		gvk, err := apiutil.GVKForObject(object, known)
		if err != nil {
			return err
		}
		object.GetObjectKind().SetGroupVersionKind(gvk)
	}
	text, err := json.Marshal(struct {
		APIVersion string            `json:"apiVersion"`
		Items      []client.Object   `json:"items"`
		Kind       string            `json:"kind"`
		Metadata   map[string]string `json:"metadata"`
	}{"v1", append([]client.Object{}, objects...), "List", map[string]string{"resourceVersion": ""}})
	if err != nil {
		return err
	}
	return printer.PrintObj(&runtime.Unknown{Raw: text}, out)
}

// AsWritten returns a typed object with the apiVersion and kind that typed clients leave out.
func AsWritten(object client.Object) (*unstructured.Unstructured, error) {
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

// Must is for mistakes in this package's own flag names.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}
