package session

import (
	"context"
	"fmt"
	"time"
)

// Shown is what a command shows at an instant.
type Shown struct {
	Text []byte
	// Note is said on standard error before the text: why that is empty, or what it lacks.
	Note string
	// State is the same without what changes by time alone, such as ages.
	State string
}

// Repeat shows something again and again until the context ends: on a terminal in place of what was there before, else
// after an empty line whenever its state has changed. Once shows it once.
func (s *Session) Repeat(ctx context.Context, every time.Duration, once bool,
	look func(ctx context.Context) (Shown, error)) error {
	last, noted, terminal := "", "", s.Width() > 0
	for first := true; ; first = false {
		shown, err := look(ctx)
		if err != nil {
			return err
		}
		if first || terminal || shown.State != last {
			switch {
			case !once && terminal:
				fmt.Fprint(s.Out, "\033[H\033[2J")
			case !first && len(shown.Text) > 0:
				fmt.Fprintln(s.Out)
			}
			if terminal || shown.Note != noted {
				fmt.Fprint(s.ErrOut, shown.Note)
			}
			if _, err := s.Out.Write(shown.Text); err != nil {
				return err
			}
			last, noted = shown.State, shown.Note
		}
		if once {
			return nil
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
