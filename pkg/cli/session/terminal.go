package session

import (
	"bytes"
	"io"
	"os"
	"unicode/utf8"

	"golang.org/x/term"
)

// Width is how many columns the terminal has that output goes to; 0 for a file or a pipe, which have no end.
func (s *Session) Width() int { return widthOf(s.Out) }

// widthOf is how many columns the terminal has that a writer writes to; 0 for any other.
func widthOf(out io.Writer) int {
	file, isFile := out.(*os.File)
	if !isFile || !term.IsTerminal(int(file.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// Fit cuts the lines of a text, which have no colours, to a number of columns; 0 leaves them as they are.
func Fit(text []byte, columns int) []byte {
	if columns <= 0 {
		return text
	}
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		content := bytes.TrimSuffix(line, []byte("\n"))
		if utf8.RuneCount(content) <= columns {
			out.Write(line)
			continue
		}
		runes := []rune(string(content))
		out.WriteString(string(runes[:columns-1]) + "…\n")
	}
	return out.Bytes()
}
