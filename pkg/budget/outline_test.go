package budget

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestAnOutlineAnswersAsItsAccountsDo does the same to accounts and to an outline of them, one after the other: both
// answer the same about what can be paid, and neither notices what is done to the other.
func TestAnOutlineAnswersAsItsAccountsDo(t *testing.T) {
	a := outlined()
	named := []string{"ns/ends", "ns/spare", "ns/late", "ns/nowhere"}
	before := answers(a)
	out := a.Outline(slices.Values(named), noon)
	same(t, "outline", before, answers(out))

	change := func(a *Accounts) {
		a.Close("ns/ends", noon.Add(time.Hour))
		a.Void("ns/spare")
		a.Close("ns/late", noon.Add(2*time.Hour))
		a.Close("ns/nowhere", noon)
		a.Open("ns/new", held(Key{"y", "e"}, "org:x", rqv1.RelationSponsor, rqv1.RoleActive, 3))
		a.Open("ns/strange", held(Key{"z", "e"}, "org:x", rqv1.RelationOwn, rqv1.RoleActive, 3))
	}
	change(out)
	same(t, "accounts whose outline changes", before, answers(a))
	after := answers(out)
	change(a)
	same(t, "outline after the same", answers(a), after)
}

// TestAnOutlineIsLeftAsItWas: what is tried on an outline is taken back without a trace.
func TestAnOutlineIsLeftAsItWas(t *testing.T) {
	out := outlined().Outline(maps.Keys(map[string]bool{"ns/ends": true, "ns/late": true}), noon)
	before := answers(out)
	for _, lease := range []string{"ns/ends", "ns/late"} {
		c, _ := out.Charge(lease)
		out.Close(lease, noon.Add(time.Hour))
		out.Open(lease, c)
	}
	same(t, "outline", before, answers(out))
}

// TestAnOutlineSharesNoMap with its accounts: both are used at the same time, each under a lock of its own or none.
func TestAnOutlineSharesNoMap(t *testing.T) {
	a := outlined()
	out, found := a.Outline(maps.Keys(a.charges), noon), 0
	for k, at := range a.accounts {
		known := map[uintptr]string{}
		mapsIn(reflect.ValueOf(at).Elem(), "", func(name string, m uintptr) { known[m] = name; found++ })
		mapsIn(reflect.ValueOf(out.accounts[k]).Elem(), "", func(_ string, m uintptr) {
			if name := known[m]; name != "" {
				t.Errorf("%s shares %s", k, name)
			}
		})
	}
	if found < 2*len(a.accounts) {
		t.Errorf("%d maps in %d accounts", found, len(a.accounts))
	}
}

// mapsIn tells of the maps in a struct.
func mapsIn(v reflect.Value, name string, tell func(name string, m uintptr)) {
	switch {
	case v.Kind() == reflect.Map && !v.IsNil():
		tell(name, v.Pointer())
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			mapsIn(v.Field(i), name+"."+v.Type().Field(i).Name, tell)
		}
	}
}

// outlined are accounts with Leases of all kinds, some closed, one of which a fast clock had begin later.
func outlined() *Accounts {
	x := of("x", "org:x", rqv1.Envelope{Name: "e", Concurrency: 40, MaxGPUHours: ptr(int64(100)), Lending: lends("*")})
	y := of("y", "org:y", rqv1.Envelope{Name: "e", Concurrency: 20, MaxGPUHours: ptr(int64(50)), Lending: lends("*")})
	a := accountsOf(x, y)
	own := held(Key{"x", "e"}, "org:x", rqv1.RelationOwn, rqv1.RoleActive, 8)
	ends, late := own, own
	ends.Until, late.Start = noon.Add(3*time.Hour), noon.Add(10*time.Minute)
	a.Open("ns/ends", ends)
	a.Open("ns/stays", own)
	a.Open("ns/late", late)
	a.Open("ns/spare", held(Key{"x", "e"}, "org:x", rqv1.RelationOwn, rqv1.RoleSpare, 2))
	a.Open("ns/lent", held(Key{"y", "e"}, "org:x", rqv1.RelationSponsor, rqv1.RoleActive, 4))
	for i := range 20 {
		a.Past(fmt.Sprintf("ns/closed-%d", i), own, noon.Add(-time.Duration(i)*time.Minute))
	}
	a.Complete()
	return a
}

// answers says what a Run could be paid for at some instants from noon on.
func answers(a *Accounts) []string {
	var out []string
	for _, at := range []time.Duration{0, time.Minute, time.Hour, 5 * time.Hour} {
		c := a.Cover(Ask{Owner: "org:x", Flavor: "H100", GPUsPerPod: 1, Run: "run", Funding: from("org:y")}, noon.Add(at))
		out = append(out, offers(c)...)
		out = append(out, fmt.Sprint(a.Spent(noon.Add(at))))
	}
	return out
}

// BenchmarkOutline is what a forecast costs everybody else: it is to take less than 5 ms, and not to grow with Leases.
func BenchmarkOutline(b *testing.B) {
	for _, size := range []struct{ closed, open int }{{0, 0}, {100_000, 0}, {100_000, 10_000}} {
		b.Run(fmt.Sprintf("closed=%d/open=%d", size.closed, size.open), func(b *testing.B) {
			a := fleet(size.closed, size.open)
			b.ReportAllocs()
			for b.Loop() {
				a.Outline(slices.Values([]string{"ns/open-1"}), noon)
			}
		})
	}
}
