package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// counter has used a second more each time that it is asked.
type counter struct{ seconds int }

func (c *counter) used() time.Duration {
	c.seconds++
	return time.Duration(c.seconds) * time.Second
}

func TestProcessorTimeIsThatOfTheScenarioThatRuns(t *testing.T) {
	events := `{"Action":"run","Test":"TestA"}
{"Action":"pause","Test":"TestA"}
{"Action":"run","Test":"TestB"}
{"Action":"output","Test":"TestB","Output":"x"}
{"Action":"run","Test":"TestB/x"}
{"Action":"pass","Test":"TestB/x","Elapsed":1}
{"Action":"pass","Test":"TestB","Elapsed":2}
{"Action":"cont","Test":"TestA"}
{"Action":"fail","Test":"TestA","Elapsed":3}
{"Action":"fail"}
`
	all, err := follow(strings.NewReader(events), &counter{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "waits")
	waits := `{"Test":"TestA","What":"short","Seconds":1,"Limit":10,"Left":9}
{"Test":"TestA/x","What":"long","Seconds":8,"Limit":90,"Left":82}
{"Test":"TestA","What":"over","Seconds":4,"Limit":3,"Left":-1}
`
	if err := os.WriteFile(path, []byte(waits), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := readWaits(path, all); err != nil {
		t.Fatal(err)
	}
	a := *all["TestA"]
	want := scenario{name: "TestA", wall: 3 * time.Second, cpu: 2 * time.Second, failed: true, waited: 13 * time.Second,
		longest: wait{"TestA/x", "long", 8, 90, 82}, near: 1, nearest: wait{"TestA", "over", 4, 3, -1}}
	if diff := cmp.Diff(want, a, cmp.AllowUnexported(scenario{})); diff != "" {
		t.Error(diff)
	}
	if got := all["TestB"].cpu; got != 3*time.Second {
		t.Errorf("TestB: %v", got)
	}
}

func TestParseStat(t *testing.T) {
	pid, parent, used, err := parseStat("12 (a (b) c) S 7 12 12 0 -1 4194560 1 2 3 4 100 20 3 4 20 0 1 0 5 6 7\n")
	if err != nil || pid != 12 || parent != 7 || used != 1270*time.Millisecond {
		t.Errorf("got %d %d %v %v", pid, parent, used, err)
	}
	if _, _, _, err := parseStat("12 nothing"); err == nil {
		t.Error("a line without a name is read")
	}
	if (meter{os.Getpid()}).used() < 0 {
		t.Error("less than nothing")
	}
}
