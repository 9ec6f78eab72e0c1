package lifecycle

import (
	"fmt"

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
