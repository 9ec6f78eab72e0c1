package session

import (
	"testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

func TestOwnerMatches(t *testing.T) {
	for _, c := range []struct {
		pattern string
		owner   rqv1.Owner
		want    bool
	}{
		{"", "org:ai", true},
		{"org:ai", "org:ai", true},
		{"org:ai", "org:ai:rai", false},
		{"org:ai*", "org:ai:rai", true},
		{"org:ai:*", "org:ai", false},
		{"*", "org:ai", true},
	} {
		if got := OwnerMatches(c.pattern, c.owner); got != c.want {
			t.Errorf("ownerMatches(%q, %q) = %v", c.pattern, c.owner, got)
		}
	}
}
