package cli

import (
	"encoding/json"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// dataFormat adds the -o flag of a command that prints data of its own rather than API objects.
func dataFormat(cmd *cobra.Command, format *string, formats string) {
	cmd.Flags().StringVarP(format, "output", "o", "", "Output format: one of "+formats+".")
	completeFormats(cmd, formats)
}

// checkFormat refuses an unknown format before anything is asked of the server.
func checkFormat(format string) error {
	if slices.Contains([]string{"", "wide", "json", "yaml", "name"}, format) {
		return nil
	}
	return fail(exitUsage, "--output must be wide, json, yaml or name, not %q", format)
}

// printData prints data as JSON or YAML.
func printData(out io.Writer, format string, data any) error {
	if format == "yaml" {
		text, err := yaml.Marshal(data)
		if err != nil {
			return err
		}
		_, err = out.Write(text)
		return err
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "    ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(data)
}
