package ending

import (
	"cmp"
	"fmt"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Told says how a rank ended, where, and by whose doing.
func Told(d *rqv1.RunDeath) string {
	return fmt.Sprintf("rank %d ended on node %s, %s: %s", d.Index, d.Node, doings[d.Cause], Words(d))
}

// ToldOnNode says likewise what may stand on a Node, which people read who may not read the Run: not what a program, or
// whoever has written it, says of its end.
func ToldOnNode(d *rqv1.RunDeath) string {
	open := *d
	if d.Cause != rqv1.CauseNode {
		open.Message = ""
	}
	return Told(&open)
}

// doings are the causes in words.
var doings = map[rqv1.EndCause]string{
	rqv1.CauseNode: "because of the node", rqv1.CauseProgram: "because of its program",
	rqv1.CauseUser: "because of its user", rqv1.CauseScheduler: "because of the scheduler",
}

// Words tells of an end in a few words: what, in which container, and what was said of it.
func Words(d *rqv1.RunDeath) string {
	text := cmp.Or(d.Sign, "failed")
	if d.ExitCode != 0 {
		text = fmt.Sprintf("%s (container %s, exit code %d)", text, d.Container, d.ExitCode)
	}
	if d.Message != "" {
		text += ": " + d.Message
	}
	return text
}
