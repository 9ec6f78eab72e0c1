// Command monitoring writes the files of manifests/monitoring into a directory; with -rules the alerts to standard
// output, as Prometheus itself reads them, and with -tests FILE what promtool tests those in a file by.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/davidlangworthy/jobtree/pkg/monitoring"
)

func main() {
	rules := flag.Bool("rules", false, "write the alerts to standard output")
	tests := flag.String("tests", "", "write tests of the alerts in a `file` to standard output")
	flag.Parse()
	var err error
	switch {
	case *rules:
		err = show(monitoring.Rules())
	case *tests != "":
		err = show(monitoring.Tests(*tests))
	default:
		err = write(flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// show writes text to standard output.
func show(text []byte, err error) error {
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}

// write writes the files.
func write(dir string) error {
	files, err := monitoring.Files()
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
