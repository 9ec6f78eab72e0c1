// Package book holds what the decider knows: the fleet, the budgets, the gangs and their open Leases, with counters kept
// up to date by events. It decides where gangs go and tells which of them an event may have unblocked. Everything in it
// is rebuilt from API objects at start. It reads no clock and calls no API; it is safe for concurrent use.
package book

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/brake"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// Book is the one in-memory structure that decisions read.
type Book struct {
	mu       sync.Mutex
	args     *config.Args
	fleet    *topology.Fleet
	accounts *budget.Accounts
	nodes    map[string]*corev1.Node
	sizes    map[string]map[int]int // GPUs per node by flavor: how many nodes of each size
	tainted  map[string]*corev1.Node
	losing   map[string]bool        // nodes whose loss is being recorded
	strayed  map[string]string      // the former domains of nodes that are left out
	heldBack map[string]bool        // nodes with signs of loss that are not taken for lost, since too many show one
	brake    brake.State            // on cuts
	held     map[types.UID]*holding // by pod
	leavers  map[types.UID]*holding // those of held whose pods have been told to go
	leases   map[types.NamespacedName]*lease
	unwound  map[types.UID][]*rqv1.Lease // closed ones by Run, until this process decides
	roles    map[rqv1.LeaseRole]int      // GPUs of open Leases by role
	gangs    map[types.UID]*gang         // by Run
	runs     map[types.NamespacedName]types.UID
	members  map[types.UID]*member               // by pod
	cuts     map[types.NamespacedName][]rank.Cut // by Reservation
	waiting  waitlist
	classes  classes
	fill     fill
	beside   beside
	// reservations are those that there are and were. intended are the gangs whose promise lies on a node, and threats those
	// whose promise may cut a Run.
	reservations reservations
	intended     map[string][]*gang
	vacated      int64 // counts the promises that were taken back or have moved
	threats      map[types.NamespacedName]map[*gang]bool
	key          []byte    // of the lottery
	decided      time.Time // the latest activation
	dues         chan struct{}
	open         bool // the ledger has been read and this process decides
	stirred      bool // something has improved since the waiting gangs were last looked at
	queue        *Outlet[ForQueue]
	controllers  *Outlet[ForControllers]
}

// New returns an empty book.
func New(args *config.Args) *Book {
	b := &Book{
		args:     args,
		fleet:    topology.NewFleet(args.TopologyLevels, args.FabricLevel),
		accounts: budget.NewAccounts(args.Rates()),
		nodes:    map[string]*corev1.Node{},
		sizes:    map[string]map[int]int{},
		tainted:  map[string]*corev1.Node{},
		losing:   map[string]bool{},
		strayed:  map[string]string{},
		heldBack: map[string]bool{},
		held:     map[types.UID]*holding{},
		leavers:  map[types.UID]*holding{},
		leases:   map[types.NamespacedName]*lease{},
		unwound:  map[types.UID][]*rqv1.Lease{},
		roles:    map[rqv1.LeaseRole]int{},
		gangs:    map[types.UID]*gang{},
		runs:     map[types.NamespacedName]types.UID{},
		members:  map[types.UID]*member{},
		cuts:     map[types.NamespacedName][]rank.Cut{},
		waiting:  waitlist{room: map[string]int64{}, nodes: map[string]int64{}, budget: map[string]int64{}},
		classes:  newClasses(),
		fill:     newFill(),
		beside:   newBeside(),

		reservations: newReservations(), intended: map[string][]*gang{}, threats: map[types.NamespacedName]map[*gang]bool{},
		dues: make(chan struct{}, 1),
	}
	b.queue, b.controllers = newOutlet[ForQueue](&b.mu), newOutlet[ForControllers](&b.mu)
	return b
}

// Open lets decisions begin: everything there was to read has been read. Pods that were held back meanwhile are woken.
func (b *Book) Open(now time.Time) {
	b.mu.Lock()
	defer b.unlock()
	b.open = true
	b.accounts.Complete()
	b.noteAll()
	b.boundAgain()
	b.claimSeats()
	b.restoreRooms()
	b.resumeAll(now) // before anybody else takes the room
	for _, m := range b.members {
		if m.stage < bound {
			b.activate(m.pod)
		}
	}
}

// LeftOut returns the nodes with GPUs that nothing can be placed on for want of a label, and why.
func (b *Book) LeftOut() []topology.LeftOut {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fleet.LeftOut()
}
