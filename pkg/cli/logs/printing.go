package logs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// print prints what containers print: one after the other, or all at once if they are followed.
func (l *logs) print(ctx context.Context, sources []source) error {
	if !l.several {
		return l.copy(ctx, sources[0], l.Out)
	}
	width := len(fmt.Sprint(sources[len(sources)-1].rank))
	var writes sync.Mutex
	prefixed := func(s source) *lines {
		return &lines{out: l.Out, writes: &writes, prefix: fmt.Sprintf("%*d: ", width, s.rank)}
	}
	if !l.follow {
		var problems []error
		for _, s := range sources {
			out := prefixed(s)
			problems = append(problems, l.copy(ctx, s, out), out.end())
		}
		return errors.Join(problems...)
	}
	if len(sources) > mostFollowed {
		return session.Fail(session.ExitUsage, "%d ranks are too many to follow at once, the most is %d: choose them with "+
			"--rank",
			len(sources), mostFollowed)
	}
	problems := make([]error, len(sources))
	var group errgroup.Group
	for i, s := range sources {
		group.Go(func() error {
			out := prefixed(s)
			problems[i] = errors.Join(l.copy(ctx, s, out), out.end())
			return nil
		})
	}
	_ = group.Wait() // what went wrong is in problems, a rank each
	return errors.Join(problems...)
}

// copy prints what one container prints.
func (l *logs) copy(ctx context.Context, s source, out io.Writer) error {
	request, err := session.PodStream(l.config, http.MethodGet, s.pod, "log", l.options(s.container))
	if err != nil {
		return err
	}
	stream, err := request.Stream(ctx)
	switch {
	case err != nil && session.NodeUnreached(err):
		return session.Fail(session.ExitError, "the API server cannot reach the kubelet of node %s, which keeps the "+
			"output of rank %d: %s", s.pod.Spec.NodeName, s.rank, session.Refusal(err))
	case err != nil:
		return err
	}
	defer func() { _ = stream.Close() }() // all of it has been read, or nobody wants it
	_, err = io.Copy(out, stream)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// lines writes whole lines with a prefix, so that those of several writers do not mix.
type lines struct {
	out    io.Writer
	writes *sync.Mutex
	prefix string
	begun  []byte // of a line whose end has not come
}

// longestLine is how long a line may be before it is written without its end.
const longestLine = 1 << 20

// Write takes part of a text.
func (l *lines) Write(text []byte) (int, error) {
	l.writes.Lock()
	defer l.writes.Unlock()
	out := bufio.NewWriter(l.out)
	for _, b := range text {
		l.begun = append(l.begun, b)
		if b == '\n' || len(l.begun) >= longestLine {
			l.flush(out)
		}
	}
	return len(text), out.Flush()
}

// end writes the last line if it has no end.
func (l *lines) end() error {
	if len(l.begun) == 0 {
		return nil
	}
	_, err := l.Write([]byte("\n"))
	return err
}

// flush writes what has begun as a line. Errors come with the writer's own Flush.
func (l *lines) flush(out *bufio.Writer) {
	_, _ = out.WriteString(l.prefix)
	_, _ = out.Write(l.begun)
	if l.begun[len(l.begun)-1] != '\n' {
		_ = out.WriteByte('\n')
	}
	l.begun = l.begun[:0]
}
