package shell

import (
	"context"
	"os"
	"time"

	"golang.org/x/term"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// sizedEvery is how often the size of the terminal is looked at: no signal tells of it on all systems.
const sizedEvery = 250 * time.Millisecond

// takeTerminal has every key go to the other side, and the other side know the terminal's size. What it returns gives
// the terminal back.
func (v *visit) takeTerminal(ctx context.Context, streams *remotecommand.StreamOptions) (restore func(), err error) {
	in, isFile := v.In.(*os.File)
	if !isFile || !term.IsTerminal(int(in.Fd())) {
		return nil, session.Fail(session.ExitUsage, "standard input is not a terminal: leave out -t")
	}
	was, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	streams.Stderr = nil // a terminal shows both alike
	streams.TerminalSizeQueue = &sizes{ctx: ctx, of: int(in.Fd())}
	return func() {
		stop()
		_ = term.Restore(int(in.Fd()), was) // there is nothing to be done if that fails
	}, nil
}

// sizes tells how large a terminal is, first as it is and then whenever that has changed.
type sizes struct {
	ctx  context.Context
	of   int
	last remotecommand.TerminalSize
}

// Next waits for the next size; nil when there are no more.
func (s *sizes) Next() *remotecommand.TerminalSize {
	for {
		width, height, err := term.GetSize(s.of)
		is := remotecommand.TerminalSize{Width: uint16(width), Height: uint16(height)}
		if err == nil && is != s.last {
			s.last = is
			return &is
		}
		select {
		case <-time.After(sizedEvery):
		case <-s.ctx.Done():
			return nil
		}
	}
}
