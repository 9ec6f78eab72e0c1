package submit

import (
	"context"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/davidlangworthy/jobtree/pkg/cli/manifest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// longestSubmitter is how long a submitter's name may be in a Run. The API server itself knows names of any length.
const longestSubmitter = 253

// sign writes into Runs who submits them, whatever the files say; nothing where the API server does not tell, or where
// the name is too long for a Run.
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
		if who == "" || utf8.RuneCountInString(who) > longestSubmitter {
			continue
		}
		if err := unstructured.SetNestedField(e.Object.Object, who, "spec", "submitter"); err != nil {
			return session.Fail(session.ExitError, "%v: spec: %v", e.From, err)
		}
	}
	return nil
}
