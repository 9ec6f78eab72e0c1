// Package book holds what the decider knows: the fleet, the budgets, the gangs and their open Leases, with counters
// kept up to date by events. It decides where gangs go and tells which of them an event may have unblocked. Everything
// in it is rebuilt from API objects at start. It reads no clock and calls no API; it is safe for concurrent use.
package book

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// Book is the one in-memory structure that decisions read. It locks, and hands events and questions to those who own
// what they are about, each of whom knows only those before it.
type Book struct {
	mu       *guard
	args     *config.Args
	fleet    *topology.Fleet
	accounts *budget.Accounts

	// What there is.
	mail   *mailbox
	nodes  *nodeTable
	roster *roster
	// Who waits, and for what they have been promised.
	waiting *waitlist
	cuts    *cutTable
	agenda  *agenda
	// What is held, and by whom.
	seats  *seating
	kept   *keptRooms
	places *placement
	ledger *ledger
	// What is to come.
	departures *departures
	candidates *candidates
	rebuffs    *rebuffs
	future     *horizon
	drainer    *drainer
	// The decisions.
	losses    *lossesFirst
	handbacks *handbacks
	savers    *savers
	turns     *activations
	starts    *starter
	shapes    *shaper
	growth    *grower
	fill      *filler
	trials    *trials
	views     *observer
	sick      *sick
	gone      *goneInVain

	strangers strangers

	pace pace

	Budgets *Budgets
}

// New returns an empty book, which keeps a configuration of its own.
func New(given *config.Args) *Book {
	own := *given
	args := &own
	b := &Book{args: args, fleet: topology.NewFleet(args.TopologyLevels, args.FabricLevel),
		accounts: budget.NewAccounts(args.Rates())}
	b.mail, b.strangers.known = &mailbox{}, map[types.UID]Stranger{}
	b.roster = &roster{gangs: map[types.UID]*gang{}, living: map[*gang]bool{},
		runs: map[types.NamespacedName]types.UID{}, leasesOf: map[types.UID]int{},
		members: map[types.UID]*member{}, turns: map[string]*quotaTurn{}, early: map[types.UID]bool{},
		classes: newClasses(), priorities: priorities{}, asking: map[types.UID]bool{}, bereft: map[string]bool{}, args: args}
	b.waiting = newWaitlist(args, b.fleet, b.accounts, b.mail, b.roster)
	b.mu = newGuard(func() {
		b.handbacks.look()
		b.losses.look()
		b.waiting.wakeStirred()
	})
	b.mail.queue, b.mail.controllers = newOutlet[ForQueue](b.mu), newOutlet[ForControllers](b.mu)
	b.mail.inquiries = newOutlet[[]types.UID](b.mu)
	b.nodes = &nodeTable{accounts: b.accounts, args: args, fleet: b.fleet,
		loss:   nodeloss.Rules{Conditions: args.LossConditions()},
		kinds:  kinds{gpus: args.GPUResource},
		byName: map[string]*corev1.Node{}, usable: map[says]*keptNodes{}, ofFlavor: map[string]map[string]*corev1.Node{},
		sizes: map[string]map[nodeSize]int{}, counted: map[string]string{}, tainted: map[string]map[string]*corev1.Node{},
		draining: map[string]bool{}, signs: map[string]bool{}, losing: map[string]bool{}, strayed: map[string]string{},
		heldBack: map[string]bool{}, suspects: map[string]time.Time{}}
	b.waiting.admits = admitting{bars: b.nodes.bars, known: map[string]map[string]*admission{},
		of: func(flavor string) map[string]*corev1.Node { return b.nodes.ofFlavor[flavor] }}
	b.cuts = &cutTable{mail: b.mail, byReservation: map[types.NamespacedName][]rank.Cut{}, decided: map[*gang][]rank.Cut{},
		forRanks: map[*gang][]rank.Cut{}}
	b.agenda = &agenda{args: args, debts: b.waiting.debts, mail: b.mail, roster: b.roster, waiting: b.waiting,
		reservations: newReservations(), promised: map[*gang]bool{}, intended: map[string][]*gang{},
		threats: map[types.NamespacedName]map[*gang]bool{},
		dues:    make(chan struct{}, 1), mostBytes: mostRecordBytes}
	b.mu.onChange = b.agenda.signalDue
	b.seats = &seating{accounts: b.accounts, args: args, fleet: b.fleet, mail: b.mail, nodes: b.nodes, roster: b.roster,
		waiting: b.waiting, unspent: func() {},
		held: map[types.UID]*holding{}, leavers: map[types.UID]*holding{}, waitedFor: map[types.UID]*holding{},
		leases: map[types.NamespacedName]*lease{}, ofRun: map[types.UID]map[types.NamespacedName]*lease{},
		current: map[types.UID]types.NamespacedName{},
		roles:   map[rqv1.LeaseRole]int{}, beside: newBeside(), shards: map[string]map[types.UID]int{},
		standby: map[string]int{}, idlers: idlers{}, bystanders: map[types.UID]bystander{},
		untaken: untaken{}}
	b.waiting.debts.seats = b.seats
	b.kept = &keptRooms{mail: b.mail, accounts: b.accounts, args: args, fleet: b.fleet, nodes: b.nodes, roster: b.roster,
		seats: b.seats, waiting: b.waiting,
		unwound: map[types.UID][]*rqv1.Lease{}}
	b.places = &placement{accounts: b.accounts, mail: b.mail, nodes: b.nodes, roster: b.roster, waiting: b.waiting,
		cuts: b.cuts, agenda: b.agenda, seats: b.seats,
		kept: b.kept, reclaimed: map[types.UID]rqv1.ClosureReason{}}
	b.ledger = &ledger{accounts: b.accounts, args: args, nodes: b.nodes, roster: b.roster, waiting: b.waiting,
		cuts: b.cuts, seats: b.seats}
	b.departures = &departures{args: args, nodes: b.nodes, roster: b.roster, seats: b.seats, kept: b.kept}
	decideWith(b, args)
	return b
}

// decideWith gives a book those who decide, who own next to nothing.
func decideWith(b *Book, args *config.Args) {
	b.candidates = &candidates{args: args, fleet: b.fleet, roster: b.roster, agenda: b.agenda, seats: b.seats}
	b.rebuffs = &rebuffs{nodes: b.nodes, waiting: b.waiting, agenda: b.agenda}
	b.future = &horizon{accounts: b.accounts, args: args, fleet: b.fleet, nodes: b.nodes, roster: b.roster,
		waiting: b.waiting, agenda: b.agenda,
		seats: b.seats, departures: b.departures, candidates: b.candidates, rebuffs: b.rebuffs}
	b.losses = &lossesFirst{nodes: b.nodes, roster: b.roster, seats: b.seats, mail: b.mail, of: map[*gang]string{},
		ends: map[types.NamespacedName]string{}, left: map[string]int{}}
	b.handbacks = &handbacks{roster: b.roster, seats: b.seats, takeIn: b.takesIn, touched: map[types.UID]bool{}}
	b.seats.closed = func(name types.NamespacedName, run types.UID) {
		b.losses.closed(name)
		b.handbacks.touched[run] = true
	}
	b.savers = &savers{args: args, nodes: b.nodes, waiting: b.waiting}
	b.turns = &activations{args: args, mu: b.mu, mail: b.mail, nodes: b.nodes, roster: b.roster, waiting: b.waiting,
		cuts: b.cuts, agenda: b.agenda, seats: b.seats,
		kept: b.kept, places: b.places, departures: b.departures, candidates: b.candidates, rebuffs: b.rebuffs,
		future: b.future}
	b.starts = &starter{accounts: b.accounts, args: args, fleet: b.fleet, mail: b.mail, nodes: b.nodes, waiting: b.waiting,
		cuts: b.cuts, agenda: b.agenda, seats: b.seats, kept: b.kept, places: b.places,
		departures: b.departures, candidates: b.candidates, turns: b.turns}
	b.drainer = &drainer{accounts: b.accounts, args: args, fleet: b.fleet, nodes: b.nodes, roster: b.roster,
		seats: b.seats, kept: b.kept, starts: b.starts, mail: b.mail}
	b.shapes = &shaper{nodes: b.nodes, roster: b.roster, waiting: b.waiting, agenda: b.agenda, seats: b.seats,
		places: b.places}
	b.growth = &grower{args: args, accounts: b.accounts, fleet: b.fleet, mail: b.mail, nodes: b.nodes, roster: b.roster,
		waiting: b.waiting, cuts: b.cuts, agenda: b.agenda,
		seats: b.seats}
	b.fill = &filler{accounts: b.accounts, fleet: b.fleet, mail: b.mail, nodes: b.nodes, roster: b.roster,
		waiting: b.waiting, agenda: b.agenda,
		seats: b.seats, places: b.places, turns: b.turns, drainer: b.drainer}
	b.trials = &trials{accounts: b.accounts, fleet: b.fleet, mu: b.mu, mail: b.mail, nodes: b.nodes, roster: b.roster,
		waiting: b.waiting, future: b.future, starts: b.starts, fill: b.fill, foreseen: map[string]time.Time{}}
	b.sick = &sick{args: args, nodes: b.nodes, roster: b.roster, mail: b.mail, on: map[types.UID]string{}}
	b.views = &observer{nodes: b.nodes, places: b.places}
	b.gone = &goneInVain{args: args, accounts: b.accounts, roster: b.roster, mail: b.mail,
		counts: map[string]map[ownerIn]rqv1.RunHeldInVain{}}
	b.Budgets = &Budgets{accounts: b.accounts, fleet: b.fleet, mu: b.mu, mail: b.mail, waiting: b.waiting, seats: b.seats,
		gone: b.gone, handbacks: b.handbacks}
}

// Reads tells that this process leads, and is about to read the whole ledger: a Lease may close from now on after it
// has been.
func (b *Book) Reads(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.roster.reads(now)
}

// Begin lets decisions begin: everything there was to read has been read. Pods that were held back meanwhile are woken.
func (b *Book) Begin(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.roster.reads(now)
	b.roster.open = true
	b.pace.windows = now
	b.accounts.Complete()
	b.ledger.repaidBefore()
	b.ledger.noteAll()
	b.shapes.boundAgain(now)
	b.places.keepAllOwn()
	b.places.claimSeats()
	b.kept.restoreRooms(now)
	for g := range b.roster.living {
		b.seats.setAllAside(g)
	}
	b.kept.recall(now)
	b.turns.resumeAll(now) // before anybody else takes the room
	b.starts.keepForLate(maps.Keys(b.roster.living), now)
	b.roster.settleAll()
	b.losses.begin(now)
	b.savers.begin(now)
	for _, m := range b.roster.members {
		if m.stage < bound {
			b.mail.activate(m.pod)
		}
	}
}

// ToQueue is the outlet for the scheduling queue.
func (b *Book) ToQueue() *Outlet[ForQueue] { return b.mail.queue }

// Controllers is the outlet for those who carry decisions out.
func (b *Book) Controllers() *Outlet[ForControllers] { return b.mail.controllers }

// Inquiries is the outlet for those who ask other scheduling rules about places to which ranks are to move
// (CheckMoves).
func (b *Book) Inquiries() *Outlet[[]types.UID] { return b.mail.inquiries }

// LeftOutNodes returns the nodes with GPUs that nothing can be placed on for want of a label or for the resources that
// they have, and why.
func (b *Book) LeftOutNodes() []topology.LeftOut {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	return slices.DeleteFunc(b.fleet.LeftOut(), func(out topology.LeftOut) bool { return b.nodes.anyMachine(out.Node) })
}

// TakeOver has gangs that wait stand in line and be promised what their Reservations say, for a book that reads the
// objects and decides nothing.
func (b *Book) TakeOver(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shapes.now = now
	for _, g := range b.roster.gangs {
		if g.run == nil || g.reservation == nil && !g.saysThatItWaits() || g.run.Status.Phase != rqv1.RunPending ||
			g.shape != nil || g.suspended() {
			continue
		}
		if !g.sized() {
			b.shapes.reshape(g) // it has been shaped before it was known which windows are open
		}
		if g.reservation != nil {
			b.agenda.setPromise(g, b.turns.recorded(g))
		}
		b.waiting.add(g)
	}
	for _, g := range b.waiting.gangs {
		if r := g.reservation; r != nil && r.Abridged() {
			b.turns.completeRecorded(g, now)
		}
	}
	b.savers.begin(now)
}

// WatchHolds has a function be called whenever the book's lock is taken, and what that returns once it has been given
// back: those who measure for how long others wait have a clock.
func (b *Book) WatchHolds(watch func() (end func())) {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	b.mu.watch = watch
}
