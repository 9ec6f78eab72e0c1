package integration

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/davidlangworthy/jobtree/test/controlplane"
)

// counters reads the counters of a scheduler whose names start with a prefix, with the administrator's certificate:
// their sums over all labels, by name.
func (c *cluster) counters(ctx context.Context, of *controlplane.Process, prefix string) (map[string]float64, error) {
	config, err := rest.TLSConfigFor(c.AdminConfig())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // a stopped process never answers
	defer cancel()
	scheduler := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		Certificates: config.Certificates, GetClientCertificate: config.GetClientCertificate,
		InsecureSkipVerify: true, // the scheduler's own certificate is self-signed
	}}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+of.Address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := scheduler.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", request.URL, response.Status)
	}
	sums := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if !ok || !strings.HasPrefix(name, prefix) {
			continue
		}
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", lines.Text(), err)
		}
		name, _, _ = strings.Cut(name, "{")
		sums[name] += number
	}
	return sums, lines.Err()
}

// attempts is how many scheduling cycles the shared cluster's scheduler has had.
func attempts(t *testing.T, c *cluster) int {
	t.Helper()
	const name = "scheduler_schedule_attempts_total"
	sums, err := c.counters(t.Context(), c.Scheduler, name)
	if err != nil {
		t.Fatal(err)
	}
	return int(sums[name])
}
