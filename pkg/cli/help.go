package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// helpTemplate has what people look for first: how a command is used, an example, its flags. What it means comes then.
const helpTemplate = `{{.Short}}.

Usage:
  {{if .Runnable}}{{.UseLine}}{{else}}{{.CommandPath}} COMMAND{{end}}
{{if .HasExample}}
Examples:
{{.Example}}
{{end}}{{if .HasAvailableSubCommands}}
Commands:
{{range .Commands}}{{if .IsAvailableCommand}}  {{rpad .Name .NamePadding}} {{.Short}}
{{end}}{{end}}{{end}}{{if .LocalNonPersistentFlags.HasAvailableFlags}}
Flags:
{{wrapped .LocalNonPersistentFlags}}{{end}}{{if .Long}}
{{.Long}}
{{end}}
"kubectl runs options" lists the flags that all commands take.
`

// addHelp has all commands print help in one form, and gives the flags that all of them take a command of their own.
func addHelp(root *cobra.Command, s *session.Session) {
	wrapped := func(flags *pflag.FlagSet) string { return flags.FlagUsagesWrapped(s.Width()) }
	cobra.AddTemplateFunc("wrapped", wrapped)
	root.SetHelpTemplate(helpTemplate)
	root.AddCommand(&cobra.Command{
		Use:    "options",
		Short:  "List the flags that all commands take",
		Hidden: true,
		Args:   cobra.NoArgs,
		Run: func(*cobra.Command, []string) {
			fmt.Fprintf(s.Out, "All commands take these flags:\n\n%s", wrapped(root.PersistentFlags()))
		},
	})
}
