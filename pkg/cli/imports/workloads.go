package imports

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/kueue"
	"github.com/davidlangworthy/jobtree/pkg/cli/manifest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// hasObjects reports whether a text is of API objects, and no script.
func hasObjects(text string) bool {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return true
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#!") {
			return false
		}
		if strings.HasPrefix(line, "apiVersion:") || strings.HasPrefix(line, "kind:") {
			return true
		}
	}
	return false
}

// workloads prints workloads of Kueue as jobtree schedules them.
func (im *importer) workloads(file, text string, printer printers.ResourcePrinter) error {
	source := manifest.Source(file)
	for _, queue := range slices.Sorted(maps.Keys(im.owners)) {
		if owner := im.owners[queue]; !rqv1.IsOwner(owner) {
			return session.Fail(session.ExitUsage, "--queue-owner %s=%s: %q is not an owner: it must be a path of lower-case "+
				"names "+
				"joined by colons, such as org:ai:rai", queue, owner, owner)
		}
	}
	if owner := im.choices.Owner; owner != "" && !rqv1.IsOwner(owner) {
		return session.Fail(session.ExitUsage, "--owner %q is not an owner: it must be a path of lower-case names joined by "+
			"colons, "+
			"such as org:ai:rai", owner)
	}
	if im.choices.Image != "" {
		return session.Fail(session.ExitUsage, "--image is for batch scripts: the workloads in %s have their own", source)
	}
	objects, err := manifest.DecodeAny(file, text)
	if err != nil {
		return err
	}
	objects, notes, err := kueue.Translate(objects, kueue.Choices{Owners: im.owners, Owner: im.choices.Owner,
		Namespace: *im.Flags.Namespace, GPUType: im.choices.GPUType, Checkpoint: im.choices.Checkpoint,
		PriorityClass: im.choices.PriorityClass})
	if err != nil {
		return session.Fail(session.ExitError, "%s: %v", source, err)
	}
	for _, n := range notes {
		fmt.Fprintf(im.ErrOut, "Warning: %s: %v\n", source, n)
	}
	for _, object := range objects {
		if err := printer.PrintObj(object, im.Out); err != nil {
			return err
		}
	}
	return nil
}
