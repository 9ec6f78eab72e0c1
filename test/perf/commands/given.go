package commands

import (
	"strings"
	"time"
)

// What people notice: a command that only begins, and one that asks the cluster.
const (
	begins = 50 * time.Millisecond
	asks   = 300 * time.Millisecond
)

// command is a line behind "kubectl runs", the time that it may take, and what takes it back before it is given again.
type command struct {
	line   string
	target time.Duration
	undo   string
}

// name is the line without what is the same in all of them.
func (c *command) name() string { return strings.ReplaceAll(c.line, in, "") }

// in names the namespace.
const in = " -n " + namespace

// given are the commands that one answer ends, where there are so many Runs: the first runs, and the last waits. What
// waits for somebody or something is not among them: watch, logs, shell, dashboard, and audit, which pauses between two
// looks.
func given(runs int) []command {
	first, last := nameOf(0)+in, nameOf(runs-1)+in
	return []command{
		{line: "help", target: begins},
		{line: "version --client", target: begins},
		{line: "list" + in, target: asks},
		{line: "list -A", target: asks},
		{line: "list -o json" + in, target: asks},
		{line: "explain " + first, target: asks},
		{line: "explain " + last, target: asks},
		{line: "plan " + last, target: asks},
		{line: "plan -A", target: asks},
		{line: "plan -f asked.yaml" + in, target: asks},
		{line: "leases -A", target: asks},
		{line: "leases -A --pods", target: asks},
		{line: "leases -A -o csv", target: asks},
		{line: "history -A", target: asks},
		{line: "budgets usage", target: asks},
		{line: "budgets usage --tree", target: asks},
		{line: "budgets explain " + first, target: asks},
		{line: "budgets explain " + last, target: asks},
		{line: "fleet", target: asks},
		{line: "nodes", target: asks},
		{line: "maintenance list", target: asks},
		{line: "cuts status", target: asks},
		{line: "checkpointed " + first, target: asks},
		{line: "submit asked.yaml --wait 0s" + in, target: asks},
		{line: "suspend " + last, target: asks, undo: "resume " + last},
	}
}
