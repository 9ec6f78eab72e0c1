package manifest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// mostDownloaded is how large a file at an address may be, in bytes: more than anybody writes.
	mostDownloaded = 16 << 20
	// downloadedWithin is how long it may take to come.
	downloadedWithin = 30 * time.Second
)

// isAddress reports whether a file is one of the Web's.
func isAddress(file string) bool {
	return strings.HasPrefix(file, "https://") || strings.HasPrefix(file, "http://")
}

// download reads what is at an address.
func download(address string) ([]byte, error) {
	answer, err := (&http.Client{Timeout: downloadedWithin}).Get(address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }() // it has been read
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers %s", answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostDownloaded+1))
	if err == nil && len(text) > mostDownloaded {
		return nil, fmt.Errorf("it is larger than %d MiB", mostDownloaded>>20)
	}
	return text, err
}
