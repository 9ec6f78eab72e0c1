package clitest

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// InFormat prints data as -o has it.
func InFormat(format string, out io.Writer, data any, about ...*session.Answer) error {
	o := session.NewAnswerOutput(&cobra.Command{}, "")
	*o.Flags.OutputFormat = format
	return o.PrintData(out, data, about...)
}
