package dashboard

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/picture"
)

//go:embed page
var files embed.FS

// site answers what the page asks for.
type site struct {
	frames    *frames
	namespace string        // the one that whoever has started the dashboard works in
	patience  time.Duration // how long a page may leave events unread
}

// eventsUnread is how long a page may leave events unread before its connection ends, such as one that the browser has
// frozen: frames are made while somebody looks. A page that goes on connects again by itself.
const eventsUnread = 30 * time.Second

// ofCluster reports whether what is at a path has been read of the cluster. All else is files of the page.
func ofCluster(path string) bool { return path == pathEvents || strings.HasPrefix(path, pathData) }

// Where what has been read of the cluster is found.
const (
	pathEvents = "/events"
	pathData   = "/api/"
)

// ServeHTTP answers with a file of the page, or with data.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case pathEvents:
		s.events(w, r)
	case pathData + "at":
		s.at(w, r)
	case pathData + "time":
		s.timeline(w, r)
	case pathData + "money":
		s.money(w)
	case pathData + "record":
		s.record(w, r)
	case "/verify.html":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Disposition", `attachment; filename="verify.html"`)
		w.Write(VerifyPage())
	default:
		page, err := fs.Sub(files, "page")
		if err != nil {
			panic(err) // it is built in
		}
		http.FileServerFS(page).ServeHTTP(w, r)
	}
}

// events sends what changes as server-sent events, the first time all that there is.
func (s *site) events(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	send := func(format string, data any) error {
		if err := control.SetWriteDeadline(time.Now().Add(s.patience)); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w, format, rowOf(data).data)
		return errors.Join(err, control.Flush())
	}
	defer s.frames.look()()
	w.Header().Set("Content-Type", "text/event-stream")
	if send("event: hello\ndata: %s\n\n", map[string]string{"namespace": s.namespace}) != nil {
		return
	}
	for shown := (&frame{}); ; {
		next := s.frames.latest()
		if next.tables != nil && next != shown {
			if send("data: %s\n\n", next.since(shown)) != nil {
				return
			}
			shown = next
		}
		select {
		case <-next.newer:
		case <-r.Context().Done():
			return
		}
	}
}

// at answers with the fleet at an instant of the past.
func (s *site) at(w http.ResponseWriter, r *http.Request) {
	at, err := time.Parse(time.RFC3339, r.URL.Query().Get("time"))
	if err != nil {
		http.Error(w, "time: "+err.Error(), http.StatusBadRequest)
		return
	}
	then := &frame{tables: s.frames.tablesAt(s.frames.watched.objects(), at, false), about: s.frames.latest().about}
	then.about.At = at
	answer(w, then.since(&frame{}))
}

// mostBars is how many bars the page is given at a time: with as many a browser is still quick, and nobody sees more.
const mostBars = 10_000

// timeline is a span of time.
type timeline struct {
	Bars []picture.Bar `json:"bars"`
	// LeftOut is how many bars there are besides.
	LeftOut int `json:"leftOut,omitempty"`
}

// timeline answers with the bars of a span of time.
func (s *site) timeline(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	from, err := time.Parse(time.RFC3339, query.Get("from"))
	to, err2 := time.Parse(time.RFC3339, query.Get("to"))
	by := picture.Lanes(query.Get("by"))
	if err != nil || err2 != nil || by != picture.ByDomain && by != picture.ByOwner {
		http.Error(w, "from and to are instants as RFC 3339 has them, and by is domain or owner", http.StatusBadRequest)
		return
	}
	now := s.frames.now()
	bars := picture.Timeline(s.frames.watched.objects(), s.frames.args, by, from, to, now)
	var shown timeline
	shown.Bars, shown.LeftOut = picture.Most(picture.Named(bars, query.Get("filter")), mostBars, from, to, now)
	answer(w, shown)
}

// money answers with what envelopes pay for.
func (s *site) money(w http.ResponseWriter) {
	m, err := moneyOf(s.frames.watched.objects(), s.frames.now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, m)
}

// record answers with one Reservation as the API server has it, so that its lottery can be computed again.
func (s *site) record(w http.ResponseWriter, r *http.Request) {
	key := r.URL.Query().Get("reservation")
	for _, of := range s.frames.watched.objects().Reservations {
		if of.Namespace+"/"+of.Name == key {
			answer(w, of)
			return
		}
	}
	http.Error(w, fmt.Sprintf("there is no Reservation %s that you may read", strings.ToValidUTF8(key, "?")),
		http.StatusNotFound)
}

func answer(w http.ResponseWriter, data any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(data)
}
