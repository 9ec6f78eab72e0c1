package controllers

import (
	"fmt"
	"strings"

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

// complete is an error that names what controllers cannot do without and is not there: they would stop the whole
// process once they need it.
func (o *Options) complete() error {
	var missing []string
	for _, is := range []struct {
		name  string
		there bool
	}{
		{"Args", o.Args != nil}, {"Book", o.Book != nil}, {"Kube", o.Kube != nil}, {"Client", o.Client != nil},
		{"Shared", o.Shared != nil}, {"EventsClient", o.EventsClient != nil}, {"Name", o.Name != ""},
		{"Clock", o.Clock != nil}, {"Holds", o.Holds != nil},
	} {
		if !is.there {
			missing = append(missing, is.name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("controllers lack %s", strings.Join(missing, ", "))
	}
	return nil
}
