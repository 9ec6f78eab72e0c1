package controllers

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestGone(t *testing.T) {
	g, other := endedPods{}, types.NamespacedName{Namespace: "ns", Name: "other"}
	g.keep(train, nil)
	g.add(train, "a")
	g.add(other, "b")
	if !g.has(train, "a") || g.has(train, "b") || !g.has(other, "b") {
		t.Error("the ends of pods are mixed up")
	}
	g.keep(train, nil)
	if g.has(train, "a") || !g.has(other, "b") {
		t.Error("forgotten is another than asked for")
	}
}
