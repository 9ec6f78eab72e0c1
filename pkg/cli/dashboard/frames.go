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
	// Unread says what may not be read, and Since from when on what is shown may be old.
	Unread []string   `json:"unread,omitempty"`
	Since  *time.Time `json:"since,omitempty"`
	// LedgerFrom is when the first GPU lease began of those that there are.
	LedgerFrom *time.Time `json:"ledgerFrom,omitempty"`
}

// frames makes frames while what is watched changes.
type frames struct {
	watched *watched
	args    *config.Args
	now     func() time.Time

	mu   sync.Mutex
	last *frame
}

func newFrames(w *watched, args *config.Args, now func() time.Time) *frames {
	return &frames{watched: w, args: args, now: now, last: &frame{newer: make(chan struct{})}}
}

// run makes frames until the context ends.
func (f *frames) run(ctx context.Context) {
	pause := time.NewTicker(leastPause)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C: // what changes meanwhile is in the same frame
		}
		select {
		case <-ctx.Done():
			return
		case <-f.watched.dirty:
		case <-time.After(mostPause):
		}
		f.make()
	}
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
		Unread: f.watched.unread}}
	if since, broken := f.watched.since(); broken {
		next.about.Since = &since
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
	f.last = next
	f.mu.Unlock()
	close(before.newer)
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
