package controlplane

import (
	"os"
	"path/filepath"
	"testing"
)

// TestElects: nobody waits for a leader where there is no election.
func TestElects(t *testing.T) {
	for text, want := range map[string]bool{
		"kind: KubeSchedulerConfiguration":     true,
		"leaderElection: {leaderElect: true}":  true,
		"leaderElection: {leaderElect: false}": false,
	} {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		config, err := readConfig(path)
		if err != nil || elects(config) != want {
			t.Errorf("%s: %v, %v, want %v", text, elects(config), err, want)
		}
	}
}
