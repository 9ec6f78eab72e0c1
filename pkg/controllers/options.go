package controllers

import (
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
)

// Namespace holds the scheduler and the records of settled Leases.
const Namespace = "jobtree-system"

// Options is what Controllers work with.
type Options struct {
	Args   *config.Args
	Book   *book.Book
	Kube   kubernetes.Interface
	Client client.WithWatch
	Shared informers.SharedInformerFactory
	// EventsClient writes events. Its rate limiter is its own: they take no turn from pods and bindings.
	EventsClient kubernetes.Interface
	// Name is what events say who tells them.
	Name  string
	Clock clock.Clock
	// Holds reports whether this process still leads. What it may not write without that, its clients refuse.
	Holds func() bool

	// events makes events, and doubt is whether the clock may be ahead: New sees to both.
	events events.EventRecorder
	doubt  *clockDoubt
}
