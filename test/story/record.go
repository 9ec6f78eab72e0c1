package story

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Record is what users see of a story once it is over, without what no two clusters have in common: names and UIDs of
// objects, moments, and which of several equal nodes a rank is on.
type Record struct {
	// Runs says how each Run stands, and Promises how each Reservation does.
	Runs, Promises []string
	// Ledger has a line for each Lease.
	Ledger  []string
	moments []moment
}

// moment is when a Lease began or ended.
type moment struct {
	what string
	at   time.Time
}

// slack is by how much moments must lie apart on one cluster to be in the same order on another.
const slack = time.Second

// moments of time that a message tells.
var clock = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ?|\b\d\d:\d\d(:\d\d)?\b`)

// record tells how the site is now.
func (s *Teller) record() *Record {
	w := s.World()
	r := &Record{}
	leases := slices.Clone(w.Leases)
	slices.SortStableFunc(leases, func(a, b *rqv1.Lease) int { return cmp.Compare(rankOf(a), rankOf(b)) })
	names := s.rename(w, leases)
	count := map[string]int{}
	for _, l := range leases {
		rank := rankOf(l)
		count[rank]++
		key := fmt.Sprintf("%s's Lease %d", rank, count[rank])
		r.Ledger = append(r.Ledger, names.Replace(s.line(l)))
		r.moments = append(r.moments, moment{key + " begins", l.Spec.Start.Time})
		if l.Status.Ended != nil {
			r.moments = append(r.moments, moment{key + " ends", l.Status.Ended.Time})
		}
	}
	plain := func(text string) string {
		return clock.ReplaceAllString(names.Replace(s.short(s.ours(text))), "MOMENT")
	}
	for _, run := range w.Runs {
		r.Runs = append(r.Runs, fmt.Sprintf("%s is %s: %s", run.Name, run.Status.Phase, plain(run.Status.Message)))
	}
	for _, p := range w.Reservations {
		if p.Ended() && p.Status.ActivatedAt == nil && len(p.Status.Cuts) == 0 {
			continue // whether a Run that starts, or has no date, a moment later has been promised one meanwhile is chance
		}
		r.Promises = append(r.Promises, fmt.Sprintf("%s is %s: %s", p.Name, p.Status.State, plain(p.Status.Reason)))
	}
	slices.Sort(r.Promises)
	return r
}

// ours is a text that calls the site's GPU type, its owner and its namespace as all stories do.
func (s *Teller) ours(text string) string {
	for _, word := range []string{s.site.Flavor, s.site.Namespace} { // on a real cluster they are the same
		whole := regexp.MustCompile(`(^|[^-\w])` + regexp.QuoteMeta(word) + `($|[^-\w])`)
		text = whole.ReplaceAllString(text, "${1}OURS${2}")
	}
	return text
}

// rankOf is the rank of a Run that a Lease is of, or its spare.
func rankOf(l *rqv1.Lease) string {
	return fmt.Sprintf("%s %s %3s", l.Spec.RunRef.Name, l.Spec.Slice.Role, l.Labels[rqv1.LabelIndex])
}

// rename has each node be called by its domain and a number, in the order in which the Leases name them.
func (s *Teller) rename(w *World, leases []*rqv1.Lease) *strings.Replacer {
	domains, known, counts := map[string]string{}, map[string]bool{}, map[string]int{}
	for _, node := range w.Nodes {
		domains[node.Name] = s.short(node.Labels["fabric.domain"])
	}
	var pairs [][2]string
	for _, l := range leases {
		node := l.Node()
		if known[node] {
			continue
		}
		known[node] = true
		domain := cmp.Or(domains[node], "a node that is gone")
		counts[domain]++
		pairs = append(pairs, [2]string{s.short(node), fmt.Sprintf("%s#%d", domain, counts[domain])})
	}
	slices.SortFunc(pairs, func(a, b [2]string) int { return len(b[0]) - len(a[0]) }) // d0-10 before d0-1
	var all []string
	for _, pair := range pairs {
		all = append(all, pair[0], pair[1])
	}
	return strings.NewReplacer(all...)
}

// Differs says how a story has ended otherwise on another cluster: what the Runs and Reservations say, what the Leases
// do, and what came after what; nil if it did not.
func (r *Record) Differs(other *Record) error {
	for _, told := range []struct {
		what        string
		here, there []string
	}{{"Runs", r.Runs, other.Runs}, {"Reservations", r.Promises, other.Promises}, {"Leases", r.Ledger, other.Ledger}} {
		if err := differs(told.here, told.there); err != nil {
			return fmt.Errorf("%s: %w", told.what, err)
		}
	}
	at := map[string]time.Time{}
	for _, m := range other.moments {
		at[m.what] = m.at
	}
	for _, first := range r.moments {
		for _, then := range r.moments {
			if then.at.Sub(first.at) > slack && at[then.what].Before(at[first.what]) {
				return fmt.Errorf("%s before %s, and not after it", then.what, first.what)
			}
		}
	}
	return nil
}
