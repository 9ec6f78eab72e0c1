package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// prometheus is one that reads what the scheduler serves, as the ServiceMonitor has it read, but every second, and that
// has jobtree's alerts.
type prometheus struct {
	t       testing.TB
	address string
}

const scrapes = `global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [rules.yaml]
scrape_configs:
- job_name: jobtree-scheduler
  scheme: https
  tls_config: {insecure_skip_verify: true}
  authorization: {credentials_file: token}
  static_configs: [{targets: ["127.0.0.1:%s"]}]
`

// newPrometheus begins one, which ends with the test.
func newPrometheus(t testing.TB, c *cluster) *prometheus {
	t.Helper()
	path, err := exec.LookPath("prometheus")
	if err != nil {
		t.Fatal("Prometheus is not installed: apt-get install prometheus")
	}
	c.kubectl("apply -f manifests/monitoring/metrics-reader.yaml")
	c.kubectl(`patch budget.rq rai --type=json -p ` +
		`[{"op":"add","path":"/spec/envelopes/0/maxGPUHours","value":1000}]`) // so that there is something left of it
	c.kubectl("create serviceaccount prometheus -n default")
	c.kubectl("create clusterrolebinding prometheus --clusterrole=jobtree-metrics-reader " +
		"--serviceaccount=default:prometheus")
	cmd := exec.Command("go", "run", "./hack/monitoring", "-rules")
	cmd.Dir = root
	rules, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"token": c.kubectl("create token prometheus -n default"),
		"rules.yaml": string(rules), "prometheus.yml": fmt.Sprintf(scrapes, c.portOf("jobtree-scheduler"))} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &prometheus{t: t, address: free.Addr().String()}
	free.Close()
	var said bytes.Buffer
	cmd = exec.Command(path, "--config.file=prometheus.yml", "--storage.tsdb.path=data", "--web.listen-address="+p.address)
	cmd.Dir, cmd.Stderr = dir, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("Prometheus says:\n%s", said.String())
		}
	})
	return p
}

// portOf is the port that a process serves on.
func (c *cluster) portOf(process string) string {
	c.t.Helper()
	arguments, err := os.ReadFile(filepath.Join("/proc", c.pid(process), "cmdline"))
	if err != nil {
		c.t.Fatal(err)
	}
	for argument := range strings.SplitSeq(string(arguments), "\x00") {
		if port, found := strings.CutPrefix(argument, "--secure-port="); found {
			return port
		}
	}
	c.t.Fatalf("%s serves on no port: %s", process, arguments)
	return ""
}

// ask reads what Prometheus answers into a value.
func (p *prometheus) ask(path string, into any) error {
	answer, err := http.Get("http://" + p.address + "/api/v1/" + path)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var body struct {
		Error string
		Data  json.RawMessage
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		return err
	}
	if body.Error != "" {
		return fmt.Errorf("%s: %s", path, body.Error)
	}
	return json.Unmarshal(body.Data, into)
}

// found returns how many series an expression has given at some time since the test began.
func (p *prometheus) found(expr string) int {
	p.t.Helper()
	var found struct{ Result []json.RawMessage }
	if err := p.ask("query?query="+url.QueryEscape("last_over_time(("+expr+")[15m:1s])"), &found); err != nil {
		p.t.Errorf("%s: %v", expr, err)
	}
	return len(found.Result)
}

// seen waits for an expression to give series, since some gauges are told every ten seconds only.
func (p *prometheus) seen(expr string) int {
	p.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; <-time.After(time.Second) {
		if n := p.found(expr); n > 0 || time.Now().After(deadline) {
			return n
		}
	}
}

// notHappened are panels of what need not happen in the story: they show no line until it has.
var notHappened = []string{"Overdraft by envelope", "Dates changed in an hour"}

// seePanels asks for what each panel of the dashboards shows, and for what each alert looks at: nothing is empty,
// unless it stands for what has not happened.
func seePanels(t *testing.T, p *prometheus) {
	if p.seen(`up{job="jobtree-scheduler"} == 1`) == 0 {
		t.Fatal("what the scheduler serves cannot be read")
	}
	panels, err := filepath.Glob(filepath.Join(root, "manifests", "monitoring", "dashboard-*.json"))
	if err != nil || len(panels) != 2 {
		t.Fatalf("%v: %v", err, panels)
	}
	for _, file := range panels {
		var dashboard struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &dashboard)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, panel := range dashboard.Panels {
			for _, target := range panel.Targets {
				if !slices.Contains(notHappened, panel.Title) && p.seen(target.Expr) == 0 {
					t.Errorf("%s: %q gives no series: %s", filepath.Base(file), panel.Title, target.Expr)
				}
			}
		}
	}
	seeAlerts(t, p)
}

var selector = regexp.MustCompile(`jobtree_[a-z_]+(\{[^}]*\})?`)

func seeAlerts(t *testing.T, p *prometheus) {
	var all struct {
		Groups []struct {
			Rules []struct{ Name, Query, Health, LastError, State string }
		}
	}
	if err := p.ask("rules", &all); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, group := range all.Groups {
		for _, rule := range group.Rules {
			seen++
			if rule.Health != "ok" {
				t.Errorf("alert %s is %s: %s", rule.Name, rule.Health, rule.LastError)
			}
			for _, of := range selector.FindAllString(rule.Query, -1) {
				if p.seen(of) == 0 {
					t.Errorf("alert %s looks at what is not there: %s", rule.Name, of)
				}
			}
		}
	}
	if seen == 0 {
		t.Error("there are no alerts")
	}
}
