package picture_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/davidlangworthy/jobtree/pkg/picture"
)

// TestMostBars leaves out those of what was held that take least room, and keeps the order of the others.
func TestMostBars(t *testing.T) {
	minutes := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }
	held := func(name string, from, to int) picture.Bar {
		end := minutes(to)
		return picture.Bar{Lane: "d", Kind: picture.Held, Name: name, From: minutes(from), To: &end}
	}
	bars := []picture.Bar{held("ns/before", -600, -58), held("ns/short", -50, -49), held("ns/long", -40, -10),
		{Lane: "d", Kind: picture.Held, Name: "ns/still", From: minutes(-5)},
		{Lane: "d", Kind: picture.Reserved, Name: "ns/next", From: minutes(30)}}
	for most, want := range map[int]string{5: "before short long still next 0", 4: "before long still next 1",
		3: "long still next 2", 2: "long next 3", 1: "next 4"} {
		kept, leftOut := picture.Most(bars, most, minutes(-60), minutes(60), noon)
		got := ""
		for _, b := range kept {
			got += b.Name[3:] + " "
		}
		if diff := cmp.Diff(want, got+fmt.Sprint(leftOut)); diff != "" {
			t.Errorf("%d (-want +got):\n%s", most, diff)
		}
	}
	if got := picture.Named(bars, "D ns/LONG"); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if got := picture.Named(bars, "NS/long d"); len(got) != 1 || len(picture.Named(bars, "")) != 5 {
		t.Errorf("%+v", got)
	}
}
