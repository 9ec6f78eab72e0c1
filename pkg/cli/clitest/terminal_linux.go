package clitest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// OnTerminal runs a command as Do does, on a terminal with a number of columns, where somebody types something. What is
// said is all that the terminal has shown.
func OnTerminal(t testing.TB, server *Server, command func(*session.Session) *cobra.Command, columns int, typed string,
	args ...string) Said {
	t.Helper()
	t.Setenv("TERM", "xterm")
	terminal, shown := Terminal(t, columns, typed)
	said := run(t, server, command, streams{terminal, terminal, terminal},
		typing{now: Noon.Add(time.Hour)}, args)
	if said.Err != "" {
		fmt.Fprintln(terminal, said.Err)
	}
	if err := terminal.Close(); err != nil {
		t.Fatal(err)
	}
	said.Out, said.Err = <-shown, ""
	return said
}

// Terminal opens a terminal with a number of columns, where somebody types something. Shown gives all that it has shown
// once it is closed.
func Terminal(t testing.TB, columns int, typed string) (terminal *os.File, shown <-chan string) {
	t.Helper()
	keyboard, terminal := openTerminal(t, columns)
	texts := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(keyboard) // it ends with an error: that the other side has been closed
		texts <- strings.ReplaceAll(string(text), "\r\n", "\n")
	}()
	if _, err := keyboard.WriteString(typed); err != nil {
		t.Fatal(err)
	}
	return terminal, texts
}

// openTerminal opens both sides of a terminal: what is typed and shown, and the one that programs have.
func openTerminal(t testing.TB, columns int) (keyboard, terminal *os.File) {
	t.Helper()
	fd, err := syscall.Open("/dev/ptmx", syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	err = errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	if err != nil {
		t.Fatal(err)
	}
	keyboard = os.NewFile(uintptr(fd), "/dev/ptmx")
	t.Cleanup(func() { _ = keyboard.Close() }) // nothing depends on it any more
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	size := &unix.Winsize{Row: 24, Col: uint16(columns)}
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, size); err != nil {
		t.Fatal(err)
	}
	return keyboard, terminal
}
