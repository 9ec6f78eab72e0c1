package budget

import (
	"fmt"
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestANamespaceThatGoes has what its closed Leases spent in the record while their objects may or may not be there,
// for a process that comes after: no other Lease counts as settled for that.
func TestANamespaceThatGoes(t *testing.T) {
	key := Key{"b", "e"}
	a := accountsOf(flat("b", "o", 64))
	a.Complete()
	c := held(key, "o", rqv1.RelationOwn, rqv1.RoleActive, 1)
	ended := map[string]time.Time{"ns/x": noon, "ns/y": noon.Add(time.Minute), "other/x": noon,
		"nsx/x": noon.Add(-time.Minute)}
	for name, end := range ended {
		a.Past(name, c, end)
	}
	want := a.spentOn(key, noon.Add(time.Hour))
	same(t, "changed", []string{"b"}, a.Leave("ns"))
	same(t, "changed when it is told again", []string{"b"}, a.Leave("ns"))
	folded, changed := a.Settle("b", noon.Add(-time.Hour))
	record := a.Record("b")
	same(t, "changed when it is told once more", []string(nil), a.Leave("ns"))
	same(t, "folded", []string{"ns/x", "ns/y"}, folded)
	same(t, "record", []any{true, int64(0), []string{"ns/x", "ns/y"}}, []any{changed, record.Through, record.Leases})

	late := c // a Lease of the namespace that is closed later
	a.Open("ns/z", late)
	a.Close("ns/z", noon.Add(2*time.Minute))
	want += GPUHour + 120*GPUSecond
	a.Dropped("b", "ns/x")
	folded, _ = a.Settle("b", noon.Add(-time.Hour))
	record = a.Record("b")
	same(t, "folded later", []string{"ns/z"}, folded)
	same(t, "names later", []string{"ns/y", "ns/z"}, record.Leases)
	same(t, "spent", want, a.spentOn(key, noon.Add(time.Hour)))
	a.Past("ns/y", c, ended["ns/y"])
	same(t, "spent when a settled Lease is told again", want, a.spentOn(key, noon.Add(time.Hour)))

	for name, leaves := range map[string][]string{"before all objects are gone": {"ns/y", "ns/z"}, "after": nil} {
		for _, first := range []bool{true, false} {
			b := accountsOf(flat("b", "o", 64))
			read := func() {
				for _, lease := range append([]string{"other/x", "nsx/x"}, leaves...) {
					end := ended[lease]
					if lease == "ns/z" {
						end = noon.Add(2 * time.Minute)
					}
					b.Past(lease, c, end)
				}
			}
			if first {
				b.SetRecord(record)
			}
			read()
			b.SetRecord(record)
			read()
			b.Complete()
			same(t, "spent after a restart "+name, want, b.spentOn(key, noon.Add(time.Hour)))
		}
	}
}

// What is closed while its namespace goes is to be settled at once: when the namespace is gone at the latest.
func TestALeaseThatIsClosedWhileItsNamespaceGoes(t *testing.T) {
	a := accountsOf(flat("b", "o", 64))
	a.Complete()
	a.Open("ns/z", held(Key{"b", "e"}, "o", rqv1.RelationOwn, rqv1.RoleActive, 1))
	same(t, "changed when the namespace is told to go", []string(nil), a.Leave("ns"))
	a.Close("ns/z", noon.Add(2*time.Minute))
	same(t, "hurried", []bool{true, false}, []bool{a.Leaves("ns/z"), a.Leaves("nsx/z")})
	same(t, "changed when it is gone", []string{"b"}, a.Leave("ns"))
	a.Settle("b", noon.Add(-time.Hour))
	record := a.Record("b")
	same(t, "names", []string{"ns/z"}, record.Leases)
}

// A record has room for so many names: the others follow once the objects of the first are gone.
func TestANamespaceOfManyLeasesGoes(t *testing.T) {
	a := accountsOf(flat("b", "o", 64))
	a.Complete()
	c := held(Key{"b", "e"}, "o", rqv1.RelationOwn, rqv1.RoleActive, 1)
	for i := range portion + 3 {
		a.Past(fmt.Sprintf("ns/l%05d", i), c, noon)
	}
	want := a.spentOn(Key{"b", "e"}, noon)
	a.Leave("ns")
	folded, _ := a.Settle("b", noon.Add(-time.Hour))
	same(t, "folded", portion, len(folded))
	again, _ := a.Settle("b", noon.Add(-time.Hour))
	same(t, "folded while they are there", 0, len(again))
	for _, lease := range folded {
		a.Dropped("b", lease)
	}
	again, _ = a.Settle("b", noon.Add(-time.Hour))
	record := a.Record("b")
	same(t, "folded after that", []string{"ns/l01000", "ns/l01001", "ns/l01002"}, again)
	same(t, "names", again, record.Leases)
	same(t, "spent", want, a.spentOn(Key{"b", "e"}, noon))
}

// A Lease of a namespace that is made again under the name of one that is gone stays, whatever of the other is still to
// be settled.
func TestANamespaceIsMadeAgain(t *testing.T) {
	a := accountsOf(flat("b", "o", 64))
	a.Complete()
	c := held(Key{"b", "e"}, "o", rqv1.RelationOwn, rqv1.RoleActive, 1)
	a.Past("ns/old", c, noon)
	a.Leave("ns")
	a.Left("ns")
	a.Past("ns/new", c, noon)
	folded, _ := a.Settle("b", noon.Add(-time.Hour))
	same(t, "folded", []string{"ns/old"}, folded)
	same(t, "names", folded, a.Record("b").Leases)
}
