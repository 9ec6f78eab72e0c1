package submit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/published"
)

// Whoever submits Runs is told what they leave unused, and which of them are lost if they are drawn, as far as the
// scheduler has published what that depends on.
func TestWarnings(t *testing.T) {
	odd := strings.Replace(text(t, "odd", ""), "totalGPUs: 8", "totalGPUs: 20", 1)
	safe := strings.Replace(text(t, "safe", ""), "spec:\n", "spec:\n  runtime: {checkpoint: 10m}\n", 1)
	spared := func(spares string) string {
		return strings.NewReplacer("totalGPUs: 8", "totalGPUs: 32", "spec:\n",
			"spec:\n  locality: {groupGPUs: 16}\n  "+spares+"\n").Replace(safe)
	}
	lost := func(which string) string {
		return "Warning: " + which + " sets neither runtime.checkpoint nor runtime.maxDuration: if the lottery draws it to " +
			"make room for another Run, it fails and does not start again; if it saves its work, set runtime.checkpoint"
	}
	for name, c := range map[string]struct {
		files     []string
		lottery   string
		published bool
		want      []string
	}{
		"a shape that leaves GPUs over": {[]string{odd}, config.LotteryAll, true, []string{
			"Warning: Run odd: by the nodes alone, 20 GPUs make 4 pods of 5; 3 GPUs of each node of 8 stay unused; 16 or 24 " +
				"would fill nodes",
			lost("Run odd")}},
		"spares that are no whole pods": {[]string{spared("spares: 1")}, config.LotteryAll, true, []string{
			"Warning: Run safe: by the nodes alone, a spare replaces a whole pod, here of 8 GPUs: spares of 1 are rounded up " +
				"to 8 in each of 2 groups, 16 in all, which are paid for as ranks are, at the rate of spares"}},
		"spares that replace no node": {[]string{strings.Replace(spared("sparesPerGroup: 4"), "totalGPUs: 32",
			"totalGPUs: 32\n    gpusPerPod: 4", 1)}, config.LotteryAll, true, []string{
			"Warning: Run safe: a lost node of 8 GPUs may take 2 pods of 4 with it, and the spares of a group replace 1: 8 " +
				"spare GPUs a group would replace them"}},
		"two": {[]string{text(t, "a", ""), text(t, "b", "")}, config.LotteryBorrowed, true,
			[]string{lost("Run a (and 1 more)")}},
		"one that starts again":  {[]string{safe}, config.LotteryAll, true, nil},
		"where nobody is drawn":  {[]string{text(t, "a", "")}, config.LotteryNone, true, nil},
		"where nothing is known": {[]string{odd}, config.LotteryAll, false, nil},
	} {
		server := clitest.NewServer(t)
		if c.published {
			of := clitest.Published(t, "lottery: "+c.lottery)
			data, err := published.Data(&config.Args{}, published.Fleet{Domains: []published.Domain{
				{GPUType: "H100-80GB", GPUs: 64, Nodes: 8, NodesByGPUs: map[int]int{8: 8}}}})
			if err != nil {
				t.Fatal(err)
			}
			of.Data[published.KeyFleet] = data[published.KeyFleet]
			server = clitest.NewServer(t, of)
		}
		path := filepath.Join(t.TempDir(), "runs.yaml")
		if err := os.WriteFile(path, []byte(strings.Join(c.files, "---\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, line := range strings.Split(clitest.Do(t, server, Command, "-f", path).Err, "\n") {
			if strings.HasPrefix(line, "Warning") {
				got = append(got, line)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
