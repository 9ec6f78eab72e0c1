package session

import (
	"bufio"
	"context"
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"
)

// AtTerminal reports whether somebody can be asked.
func (s *Session) AtTerminal() bool { return s.Seated || printers.IsTerminal(s.In) }

// Agrees reads the answer to a question: only yes is yes. It ends with the context, since nobody who interrupts a
// command wants to press Enter first.
func (s *Session) Agrees(ctx context.Context) (bool, error) {
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(s.In).ReadString('\n') // without an answer it is no
		answer <- line
	}()
	select {
	case line := <-answer:
		return slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(line))), nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}
