package controllers

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestWhatPassesClosesNoLeases tells failures to make the replacements of lost ranks apart: the Leases by which the loss is known
// stay open as long as the replacements may still be made.
func TestWhatPassesClosesNoLeases(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, c := range map[string]struct {
		problem error
		passes  bool
	}{
		"no failure":              {nil, false},
		"a quota":                 {apierrors.NewForbidden(pods, "run-0", errors.New("exceeded quota")), false},
		"a template nobody takes": {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "run-0", nil), false},
		"one of several is taken": {errors.Join(nameTaken{}, context.Canceled), false},
		"an API server in need":   {apierrors.NewTooManyRequests("later", 1), true},
		"a time-out":              {context.DeadlineExceeded, true},
		"one that does not lead":  {errors.Join(errors.New("this process does not lead")), true},
	} {
		if got := passes(c.problem); got != c.passes {
			t.Errorf("%s: %t", name, got)
		}
	}
}
