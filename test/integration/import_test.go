package integration

import (
	"context"
	"strings"
	"testing"
)

// TestImportedRunsAreAccepted has the API server check the Runs that batch scripts become: each is one that it takes.
func TestImportedRunsAreAccepted(t *testing.T) {
	c := apiServer(t)
	mustCommand(t, c, "", "create namespace imported")
	t.Cleanup(func() {
		_, _, _ = c.Kubectl(context.Background(), "delete", "namespace", "imported")
	})
	for directives, body := range map[string]string{
		"-N 2 --gpus-per-node=8 --switches=1 -t 1-12 --mem=512G -c 96":       "set -e\n\ttrain  \necho $$ $(RANK) 'ä'\n",
		"-N 2-4 --gpus-per-node=8 --switches=1 --time=90:30 --hold":          "torchrun train.py\n",
		"-n 10 --gpus-per-task=2 --cpus-per-gpu=12 --mem-per-cpu=2G -D /srv": "train\n",
		"-G 12 -J 70B_Model.v2": "",
	} {
		script := "#!/bin/bash\n#SBATCH " + directives + "\n" + body
		run := mustCommand(t, c, script, "runs import - --owner org:cli --gpu-type H100-80GB --image train:1.0 "+
			"--checkpoint 1h30m --priority-class system-node-critical -n imported")
		said := mustCommand(t, c, run, "runs submit -f - --dry-run=server -n imported")
		if !strings.Contains(said, "created (server dry run)") {
			t.Errorf("%s: %s", directives, said)
		}
	}
}
