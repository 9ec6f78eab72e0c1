// Package controllers feeds the book from the API and carries the decisions of pkg/lifecycle out. It holds no policy.
package controllers

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/lane"
)

// Controllers are those who look after one concern each, from one set of watches.
type Controllers struct {
	book    *book.Book
	clock   clock.Clock
	kube    kubernetes.Interface
	told    *reporter
	watches *watches
	runs    *reconciler
	nodes   *nodeJudge
	limit   *lossLimit
	contact *contact
	words   *nodeWords
	doubted *suspects
	ledger  *ledger
	budgets *budgetReporter
	dates   *dates
	brakes  *brakes
	dumps   *dumps
	lottery *lottery
	audit   *auditor
	public  *publisher
}

// NewClient returns a client for our kinds. They are custom resources, which the API server serves as JSON only.
func NewClient(config *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	if err := rqv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	// What the API server says of a version of PodGroups it says each time that one is read.
	config.WarningHandlerWithContext = log.NewKubeAPIWarningLogger(log.KubeAPIWarningLoggerOptions{Deduplicate: true})
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", rqv1.GroupVersion, err)
	}
	return c, nil
}

// New returns controllers that do nothing until they are started. All fields of the options are required.
func New(o Options) (*Controllers, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	told := newReporter(o.EventsClient, o.Clock, o.Name)
	o.events, o.doubt = told, newClockDoubt(o.Clock)
	w := newWatches(o.Client, o.Kube)
	seen := newNodeWatch(o.Args)
	limit := &lossLimit{book: o.Book, kube: o.Kube, events: o.events, clock: o.Clock, seen: seen}
	c := &Controllers{
		book: o.Book, clock: o.Clock, kube: o.Kube, told: told, watches: w, contact: seen.contact, limit: limit,
		nodes: &nodeJudge{book: o.Book, kube: o.Kube, events: o.events, clock: o.Clock, leads: o.Holds, leases: w.leases,
			seen: seen, limit: limit},
		ledger:  newLedger(o.Book, o.Client, o.Kube, o.doubt, o.Args),
		budgets: &budgetReporter{book: o.Book, client: o.Client, events: o.events, clock: o.Clock, watched: w.budgets},
		dates: &dates{book: o.Book, client: o.Client, clock: o.Clock, doubt: o.doubt,
			reservations: newReservationAges(), retention: o.Args.LedgerRetention.Duration},
		brakes:  &brakes{book: o.Book, kube: o.Kube, events: o.events, clock: o.Clock},
		lottery: &lottery{book: o.Book, kube: o.Kube, clock: o.Clock},
		words:   &nodeWords{book: o.Book, events: o.events, clock: o.Clock},
		audit:   newAuditor(&o, w, seen.contact),
		public:  &publisher{book: o.Book, kube: o.Kube, clock: o.Clock, args: o.Args},
	}
	nodes := o.Shared.Core().V1().Nodes().Informer()
	c.doubted = newSuspects(&o, w.runs, nodes)
	c.runs = newReconciler(&o, w, c.ledger.settled.storeSoon)
	c.dumps = &dumps{kube: o.Kube, see: c.runs.observed}
	c.ledger.changed = c.runs.changed
	countViolations(nil)
	if err := w.feed(o.Book, o.Shared, c.runs.changed, c.ledger.settled.storeSoon); err != nil {
		return nil, err
	}
	if err := c.runs.followGone(w.pods); err != nil {
		return nil, err
	}
	if err := c.runs.groups.follow(w, o.Shared.Core().V1().Pods().Informer()); err != nil {
		return nil, err
	}
	if err := handle(w, w.guards, c.runs.guarded, c.runs.unguarded); err != nil {
		return nil, err
	}
	if err := handle(w, w.runs, c.runs.ended.note, c.runs.ended.drop); err != nil {
		return nil, err
	}
	if err := handle(w, w.runs, c.doubted.note, c.doubted.drop); err != nil {
		return nil, err
	}
	if err := handle(w, w.reservations, c.dates.reservations.note, c.dates.reservations.drop); err != nil {
		return nil, err
	}
	return c, seen.follow(w, nodes, o.Clock)
}

// EventRecorder makes events of what is told of Runs and their pods, from Start on.
func (c *Controllers) EventRecorder() events.EventRecorder { return c.told }

// Start feeds the book from now on. Once leading is closed it reads the ledger anew, lets decisions begin and
// reconciles, until the context ends. It returns an error when the process must give the lead away.
func (c *Controllers) Start(ctx context.Context, leading <-chan struct{}) error {
	logger := klog.FromContext(ctx)
	defer c.runs.shutDown()
	go c.answer(ctx)
	go c.contact.keep(ctx, c.kube, c.clock)
	go c.told.watch(ctx)
	if err := awaitKinds(ctx, c.kube); err != nil {
		return nil
	}
	if !c.watches.sync(ctx) {
		return nil
	}
	logger.Info("The book is up to date", "runs", len(c.watches.runs.GetStore().ListKeys()))
	select {
	case <-ctx.Done():
		return nil
	case <-leading:
	}
	keyless := c.lottery.readKey(ctx)
	if err := c.ledger.readOnceLed(ctx); err != nil {
		return err
	}
	c.book.SetBrake(unread)
	c.book.Begin(c.clock.Now())
	c.runs.begin()
	logger.Info("This process leads from now on")
	if keyless != nil {
		logger.Error(keyless, "No Run is drawn until the lottery's key can be read")
		go c.lottery.awaitKey(ctx)
	}
	for _, l := range lane.All {
		for range l.Workers() {
			go c.runs.workIn(ctx, l)
		}
	}
	go c.runs.retry()
	c.runs.groups.begin()
	c.runs.groups.watchObjects(ctx)
	for range groupWorkers {
		go c.runs.groups.work(ctx)
	}
	for _, look := range []func(context.Context){
		c.ledger.settle, c.nodes.watch, c.limit.watch, c.words.watch, c.brakes.watch, c.dumps.watch,
		c.dates.keep, c.dates.tidyReservations, c.runs.ended.watch, c.audit.watch, c.doubted.work, c.public.watch,
		func(ctx context.Context) { every(ctx, c.clock, 5*time.Second, c.runs.lanes.count) },
		func(ctx context.Context) {
			c.runs.ended.doubt.settle(ctx, c.kube)
			c.runs.ended.stir()
		},
	} {
		go look(ctx)
	}
	c.budgets.watch(ctx)
	return nil
}

// answer does what the book asks for, until the context ends.
func (c *Controllers) answer(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.book.Controllers().Filled():
		}
		asked := c.book.Controllers().Take()
		if len(asked.Lookup) > 0 {
			go c.ledger.lookUp(ctx, asked.Lookup)
		}
		for _, run := range asked.Reconcile {
			c.runs.changed(run, asked.Work[run])
		}
	}
}
