package dashboard

import (
	"bytes"
	"regexp"
	"testing"
)

// TestTheFileThatChecksRecords has all in it that it needs, and lets the browser run and show that alone.
func TestTheFileThatChecksRecords(t *testing.T) {
	page := VerifyPage()
	policy := regexp.MustCompile(`<meta http-equiv="Content-Security-Policy" content="(.*)">`).FindSubmatch(page)
	if policy == nil {
		t.Fatalf("no policy:\n%s", page)
	}
	for _, tag := range []string{`<script type="module">`, "<style>"} {
		_, rest, begins := bytes.Cut(page, []byte(tag))
		text, _, ends := bytes.Cut(rest, []byte("</"+regexp.MustCompile("[a-z]+").FindString(tag)+">"))
		if !begins || !ends || !bytes.Contains(policy[1], []byte(hashed(text))) {
			t.Errorf("%s is not there, or may not be used: %s", tag, policy[1])
		}
	}
	if found := regexp.MustCompile(`(?i)<[^>]* (src|href)=|@import|url\(|^import `).Find(page); found != nil {
		t.Errorf("something is loaded: %s", found)
	}
	if !bytes.HasPrefix(policy[1], []byte("default-src 'none'; ")) {
		t.Errorf("something may be loaded: %s", policy[1])
	}
}
