package submit

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/davidlangworthy/jobtree/pkg/cli/manifest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// sign writes into Runs who submits them, whatever the files say; nothing where the API server does not tell.
func (s *submission) sign(ctx context.Context, c client.Client, entries []manifest.Entry) error {
	if s.dryRun == "client" {
		return nil
	}
	who, known := "", false
	for _, e := range entries {
		if !isRun(e.Object) {
			continue
		}
		if !known {
			who, known = session.Username(ctx, c), true
		}
		unstructured.RemoveNestedField(e.Object.Object, "spec", "submitter")
		if who == "" {
			continue
		}
		if err := unstructured.SetNestedField(e.Object.Object, who, "spec", "submitter"); err != nil {
			return session.Fail(session.ExitError, "%v: spec: %v", e.From, err)
		}
	}
	return nil
}
