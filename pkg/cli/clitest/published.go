package clitest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/published"
)

// Published is what a scheduler publishes that has some arguments, as YAML, and no nodes.
func Published(t testing.TB, arguments string) *corev1.ConfigMap {
	t.Helper()
	args, err := config.Parse([]byte(arguments))
	if err != nil {
		t.Fatal(err)
	}
	data, err := published.Data(args, published.Fleet{})
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "jobtree-system", Name: published.ConfigMap},
		Data: data}
}
