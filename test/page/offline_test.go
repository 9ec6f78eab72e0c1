package page

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// verifyPage is the file that checks records offline, opened from disk.
func verifyPage(t *testing.T) *tab {
	t.Helper()
	cmd := exec.Command("bin/kubectl-runs", "dashboard", "--verify-page")
	cmd.Dir = root
	page, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "verify.html")
	if err := os.WriteFile(file, page, 0o644); err != nil {
		t.Fatal(err)
	}
	return open(t, (&url.URL{Scheme: "file", Path: file}).String(), 900, 900)
}

// checked is a record and what jobtree's own check says of it.
type checked struct {
	Record json.RawMessage `json:"record"`
	Valid  bool            `json:"valid"`
}

// TestBothChecksAgree has the page check 10,000 random records, of which half have been changed.
func TestBothChecksAgree(t *testing.T) {
	cmd := exec.Command("go", "run", "./test/records", "-n", "10000", "-seed", "1")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	p := verifyPage(t)
	valid, all := 0, 0
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	for len(lines) > 0 {
		some := lines[:min(500, len(lines))]
		lines = lines[len(some):]
		records := append(append([]byte("["), bytes.Join(some, []byte(","))...), ']')
		var verdicts []string
		p.eval(`Promise.all(`+string(records)+`.map(async (line) => (await verifyRecord(line.record)).verdict))`, &verdicts)
		for i, verdict := range verdicts {
			var c checked
			if err := json.Unmarshal(some[i], &c); err != nil {
				t.Fatal(err)
			}
			all++
			if c.Valid {
				valid++
			}
			if c.Valid != (verdict == "valid") {
				t.Fatalf("jobtree says valid: %v, the page says %s: %s", c.Valid, verdict, c.Record)
			}
		}
	}
	if all != 10000 || valid < 4000 || valid > 9000 {
		t.Errorf("%d of %d records are valid: the records show nothing", valid, all)
	}
	p.silent()
}

// TestAForgedRecordIsFound pastes a record that somebody has changed, and one that is none.
func TestAForgedRecordIsFound(t *testing.T) {
	cmd := exec.Command("go", "run", "./test/records", "-n", "1", "-seed", "7")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var c checked
	if err := json.Unmarshal(out, &c); err != nil {
		t.Fatal(err)
	}
	p := verifyPage(t)
	check := func(record, says string) {
		t.Helper()
		quoted, err := json.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		p.eval(`document.getElementById("record").value = `+string(quoted)+`; document.getElementById("check").click()`, nil)
		p.says(says)
	}
	check(string(c.Record), "This record is valid.")
	p.keep("verify")
	forged := bytes.Replace(c.Record, []byte(`"gpus":`), []byte(`"gpus":1`), 1)
	check(string(forged), "This record is not valid.")
	p.keep("verify-forged")
	for _, odd := range []struct{ record, says string }{{"{", "This is not JSON"}, {"{}", "This is not one Reservation."},
		{"null", "This is not one Reservation."}, {`{"kind":"List","items":[]}`, "This is not one Reservation."},
		{`{"kind":"Reservation","status":{}}`, "This record is not drawn yet."},
		{`{"kind":"Reservation","status":{"conflictSet":{"length":1},"lottery":{"nonce":"x"}}}`,
			"This record is not valid: it"},
	} {
		check(string(c.Record), "This record is valid.")
		check(odd.record, odd.says)
		var still bool
		p.eval(`document.body.innerText.includes("This record is valid")`, &still)
		if still {
			t.Errorf("what is said of another record is said of %s", odd.record)
		}
	}
	var sent string
	p.eval(`fetch("https://example.org/").then(() => "sent", () => "refused")`, &sent)
	if sent != "refused" {
		t.Error("the page may send what it is shown")
	}
	p.refused("Content Security Policy")
}

// refused fails the test unless the console says that the page's policy has refused something, and nothing else.
func (p *tab) refused(policy string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.errors) == 0 {
		p.t.Error("nothing is refused")
	}
	for _, said := range p.errors {
		if !strings.Contains(said, policy) {
			p.t.Errorf("the console says: %s", said)
		}
	}
}
