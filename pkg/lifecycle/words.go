package lifecycle

import (
	"fmt"
	"strings"

	"github.com/davidlangworthy/jobtree/pkg/book"
)

// firstStuck says which pods are stuck: the first of them, and how many more there are.
func firstStuck(pods []book.Stuck) string {
	if more := len(pods) - 1; more > 0 {
		return fmt.Sprintf("%s, and %d more", pods[0], more)
	}
	return pods[0].String()
}

// withBrake adds to a message why nobody is cut.
func withBrake(message, brake string) string {
	if brake == "" {
		return message
	}
	return message + "; " + brake
}

// longestMessage is how many characters the API allows the message of a condition.
const longestMessage = 32768

// Shortened returns a text that has at most so many bytes, and says of a longer one that something is left out. What
// others say, such as the API server of a template, may be of any length.
func Shortened(text string, most int) string {
	const left = "…"
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(left)], "") + left
}
