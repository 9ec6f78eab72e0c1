package resolver

import (
	"crypto/sha256"
	"fmt"
)

// nonce is a fixed nonce for each number.
func nonce(n int) [32]byte { return sha256.Sum256(fmt.Appendf(nil, "nonce %d", n)) }
