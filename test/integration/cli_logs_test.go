package integration

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/davidlangworthy/jobtree/test/controlplane"
)

const asScheduler = " --as=system:serviceaccount:jobtree-system:jobtree-scheduler --as-group=system:masters"

// checkLogs plays the kubelet of a node with two pods of a Run, and has the API server pass on what they print.
func checkLogs(t *testing.T, c *controlplane.ControlPlane, namespace, run string) {
	kubelet := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(out, "%s prints this\n", strings.TrimPrefix(r.URL.Path, "/containerLogs/"))
	}))
	t.Cleanup(kubelet.Close)
	t.Cleanup(func() {
		_, _, _ = c.Kubectl(context.Background(), "delete", "node", "played")
	})
	_, port, err := net.SplitHostPort(kubelet.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	mustCommand(t, c, `{apiVersion: v1, kind: Node, metadata: {name: played}}`, "create -f -")
	mustCommand(t, c, "", `patch node played --subresource=status --type=merge -p {"status":{"addresses":[{"type":`+
		`"InternalIP","address":"127.0.0.1"}],"daemonEndpoints":{"kubeletEndpoint":{"Port":`+port+`}}}}`)
	uid := mustCommand(t, c, "", "get run.rq -n "+namespace+" "+run+" -o jsonpath={.metadata.uid}")
	for _, index := range []string{"0", "1"} {
		pod := run + "-" + index
		mustCommand(t, c, `{apiVersion: v1, kind: Pod, metadata: {name: `+pod+`, namespace: `+namespace+`, labels: {`+
			`rq.davidlangworthy.io/run: `+run+`, rq.davidlangworthy.io/run-uid: `+uid+`, `+
			`rq.davidlangworthy.io/role: Active, rq.davidlangworthy.io/index: "`+index+`"}}, spec: {nodeName: played, `+
			`containers: [{name: main, image: busybox}]}}`, "create -f -"+asScheduler)
		mustCommand(t, c, "", "patch pod -n "+namespace+" "+pod+` --subresource=status --type=merge -p {"status":{"phase":`+
			`"Running","containerStatuses":[{"name":"main","image":"","imageID":"","ready":true,"restartCount":0,"state":{`+
			`"running":{}}}]}}`+asScheduler)
	}
	prefix := namespace + "/" + run
	for line, want := range map[string]said{
		run: {out: prefix + "-0/main prints this\n",
			err: "Rank 0 of Run " + run + " (pod " + run + "-0 on node played), one of 2; --rank N or --all shows others\n"},
		run + " --rank 1": {out: prefix + "-1/main prints this\n",
			err: "Rank 1 of Run " + run + " (pod " + run + "-1 on node played)\n"},
		run + " --all":    {out: "0: " + prefix + "-0/main prints this\n1: " + prefix + "-1/main prints this\n"},
		run + " --rank 2": {err: "Error: Run " + run + " has no rank 2: it has ranks 0 to 1\n", code: 1},
	} {
		if got := command(t, c, "", "runs logs -n "+namespace+" "+line); got != want {
			t.Errorf("logs %s: %+v, want %+v", line, got, want)
		}
	}
}
