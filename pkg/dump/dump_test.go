package dump

import (
	"crypto/sha512"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestAnswer(t *testing.T) {
	run := types.NamespacedName{Namespace: "team", Name: "big"}
	var noise []byte // which is not to be compressed
	for sum := (sha512.Sum512(nil)); len(noise) < most; sum = sha512.Sum512(sum[:]) {
		noise = append(noise, sum[:]...)
	}
	for name, c := range map[string]struct {
		known         []any
		problem       error
		want, refused string
	}{
		"known":     {known: []any{map[string]int{"x": 1}, "in short"}, want: "{\"x\":1}\n"},
		"not known": {problem: errors.New("there is no such Run"), refused: "there is no such Run"},
		"too large": {known: []any{noise, noise}, refused: "the answer is too large for a ConfigMap"},
		"in short":  {known: []any{noise, "in short"}, want: "\"in short\"\n"},
		"no JSON":   {known: []any{func() {}, "in short"}, refused: "json: unsupported type: func()"},
	} {
		var asked corev1.ConfigMap
		if _, ok := Asked(&asked); ok {
			t.Errorf("%s: an empty ConfigMap asks", name)
		}
		Ask(&asked, run)
		if got, ok := Asked(&asked); !ok || got != run {
			t.Errorf("%s: %v is asked for, %v, want %v", name, got, ok, run)
		}
		if got, err := Read(&asked); got != nil || err != nil {
			t.Errorf("%s: before the answer: %s, %v", name, got, err)
		}
		Answer(&asked, c.problem, c.known...)
		if _, ok := Asked(&asked); ok {
			t.Errorf("%s: it asks although it is answered", name)
		}
		got, err := Read(&asked)
		told := ""
		if err != nil {
			told = err.Error()
		}
		if diff := cmp.Diff([]string{c.want, c.refused}, []string{string(got), told}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
