package manifest

import (
	"testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// FuzzDecode: a manifest is refused with a message, or it holds objects of our kinds that have a name.
func FuzzDecode(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string, inJSON bool) {
		objects, err := Decode(document{file: "fuzz", index: 1, json: inJSON, text: []byte(text)})
		if err != nil {
			if err.Error() == "" {
				t.Error("refused without a word")
			}
			return
		}
		for _, o := range objects {
			if o.GroupVersionKind().GroupVersion() != rqv1.GroupVersion || o.GetName() == "" && o.GetGenerateName() == "" {
				t.Errorf("%q holds %s %q", text, o.GroupVersionKind(), o.GetName())
			}
		}
	})
}
