package manifest

import (
	"context"
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

// mostRedirected is how often an address may lead to another one.
const mostRedirected = 10

// downloads is how files of the Web are read.
var downloads = &http.Client{Timeout: downloadedWithin, CheckRedirect: mayLead}

// mayLead has what was asked for under protection not come without it: whoever is between could replace it.
func mayLead(to *http.Request, by []*http.Request) error {
	switch {
	case len(by) > mostRedirected:
		return fmt.Errorf("it leads to more than %d other addresses", mostRedirected)
	case to.URL.Scheme != "https" && by[0].URL.Scheme == "https":
		return fmt.Errorf("it leads to %s, which is not protected by TLS", to.URL)
	}
	return nil
}

// download reads what is at an address.
func download(ctx context.Context, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	answer, err := downloads.Do(request)
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
