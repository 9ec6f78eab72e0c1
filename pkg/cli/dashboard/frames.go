package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/picture"
)

// A frame is made at most four times a second, and at least every ten seconds, since states of nodes depend on time.
const (
	leastPause = 250 * time.Millisecond
	mostPause  = 10 * time.Second
)

// Tables of a frame.
const (
	tableNodes        = "nodes"
	tableRuns         = "runs"
	tableReservations = "reservations"
)

// row is one row of a table, as it is sent. It is replaced when it changes, never changed.
type row struct{ data json.RawMessage }

// frame is what the page shows, as rows by table and key.
type frame struct {
	tables map[string]map[string]*row
	about  about
	newer  chan struct{} // closed when there is a newer frame
}

// about is what a frame says of itself.
type about struct {
	// At is when it was made, by the clock of this machine.
	At     time.Time `json:"at"`
	Levels []string  `json:"levels"`
	// Unread says what may not be read, and Since from when on what is shown may be old: nothing could be read any more,
	// or not as whoever asks if LoggedOut. Why is what the client says of that.
	Unread    []string   `json:"unread,omitempty"`
	Since     *time.Time `json:"since,omitempty"`
	LoggedOut bool       `json:"loggedOut,omitempty"`
	Why       string     `json:"why,omitempty"`
	// LedgerFrom is when the first GPU lease began of those that there are.
	LedgerFrom *time.Time `json:"ledgerFrom,omitempty"`
}

// frames makes frames while what is watched changes.
type frames struct {
	watched *watched
	args    *config.Args
	now     func() time.Time

	eyes chan struct{} // has a value after somebody began to look, or ceased

	mu      sync.Mutex
	last    *frame
	lookers int
}

func newFrames(w *watched, args *config.Args, now func() time.Time) *frames {
	return &frames{watched: w, args: args, now: now, eyes: make(chan struct{}, 1),
		last: &frame{newer: make(chan struct{})}}
}

// run makes frames until the context ends, while somebody looks.
func (f *frames) run(ctx context.Context) {
	for {
		due, changed := time.After(mostPause), f.watched.dirty
		if !f.lookedAt() {
			due, changed = nil, nil
		}
		select {
		case <-ctx.Done():
			return
		case <-f.eyes:
			if !f.lookedAt() {
				continue
			}
		case <-changed:
		case <-due:
		}
		f.make()
		select {
		case <-ctx.Done():
			return
		case <-time.After(leastPause): // what changes meanwhile is in the same frame
		}
	}
}

// look has frames be made until it is told that nobody looks any more. What was made before has become old meanwhile,
// and is not shown first.
func (f *frames) look() (done func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lookers == 0 {
		f.last = &frame{newer: make(chan struct{}), about: f.last.about}
	}
	f.counted(1)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.counted(-1)
	}
}

// counted counts who looks, and has run see whether that is anybody.
func (f *frames) counted(change int) {
	f.lookers += change
	select {
	case f.eyes <- struct{}{}:
	default:
	}
}

func (f *frames) lookedAt() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lookers > 0
}

// latest returns the last frame.
func (f *frames) latest() *frame {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// make makes a frame of what is there now.
func (f *frames) make() {
	before, now := f.latest(), f.now()
	next := &frame{newer: make(chan struct{}), about: about{At: now, Levels: picture.Levels(f.args),
		Unread: f.watched.notRead()}}
	if out, is := f.watched.outage(); is {
		next.about.Since, next.about.LoggedOut, next.about.Why = &out.since, out.login, out.why
	}
	objects := f.watched.objects()
	for _, lease := range objects.Leases {
		if from := &lease.Spec.Start.Time; next.about.LedgerFrom == nil || from.Before(*next.about.LedgerFrom) {
			next.about.LedgerFrom = from
		}
	}
	next.tables = f.tablesAt(objects, now, true)
	for table, rows := range next.tables {
		for key, r := range rows {
			if old := before.tables[table][key]; old != nil && bytes.Equal(old.data, r.data) {
				rows[key] = old
			}
		}
	}
	f.mu.Lock()
	shown := f.last
	f.last = next
	f.mu.Unlock()
	close(shown.newer)
}

// tablesAt returns what was at an instant; of the past there is what GPU leases tell.
func (f *frames) tablesAt(o *picture.Objects, at time.Time, present bool) map[string]map[string]*row {
	tables := map[string]map[string]*row{tableNodes: {}, tableRuns: {}, tableReservations: {}}
	nodes := picture.FleetAt(o, f.args, at, present)
	for i := range nodes {
		tables[tableNodes][nodes[i].Name] = rowOf(&nodes[i])
	}
	if !present {
		for _, r := range runsThen(o, at) {
			tables[tableRuns][r.Key] = rowOf(r)
		}
		return tables
	}
	for _, r := range runsNow(o, at) {
		tables[tableRuns][r.Key] = rowOf(r)
	}
	for _, r := range reservationsNow(o) {
		tables[tableReservations][r.Key] = rowOf(r)
	}
	return tables
}

func rowOf(of any) *row {
	data, err := json.Marshal(of)
	if err != nil {
		panic(err) // plain data
	}
	return &row{data}
}

// update is what brings a page from one frame to another.
type update struct {
	about
	Tables map[string]changed `json:"tables"`
}

// changed is what has changed in one table.
type changed struct {
	Set  map[string]json.RawMessage `json:"set,omitempty"`
	Gone []string                   `json:"gone,omitempty"`
}

// since returns what is different from an earlier frame.
func (f *frame) since(before *frame) update {
	u := update{about: f.about, Tables: map[string]changed{}}
	for table, rows := range f.tables {
		c := changed{Set: map[string]json.RawMessage{}}
		for key, r := range rows {
			if before.tables[table][key] != r {
				c.Set[key] = r.data
			}
		}
		for key := range before.tables[table] {
			if rows[key] == nil {
				c.Gone = append(c.Gone, key)
			}
		}
		if len(c.Set)+len(c.Gone) > 0 {
			u.Tables[table] = c
		}
	}
	return u
}
