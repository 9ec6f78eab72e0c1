package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDefaults(t *testing.T) {
	for _, raw := range []string{"", "null", "{}", `{"apiVersion":"rq.davidlangworthy.io/v1","kind":"JobtreeArgs"}`} {
		got, err := Parse([]byte(raw))
		if err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		got.TypeMeta = metav1.TypeMeta{}
		want := &Args{
			TopologyLevels: []string{"region", "cluster", "fabric.domain"}, FabricLevel: "fabric.domain",
			GPUResource: Resources{"nvidia.com/gpu"}, FlavorLabel: "gpu.flavor",
			GangDeadline:       &metav1.Duration{Duration: 2 * time.Minute},
			ReservationLead:    &metav1.Duration{Duration: 15 * time.Minute},
			WindowDelay:        &metav1.Duration{Duration: 10 * time.Second},
			NoticePeriod:       &metav1.Duration{Duration: 30 * time.Second},
			OpportunisticGrace: &metav1.Duration{Duration: 5 * time.Second},
			ActivationShield:   &metav1.Duration{Duration: 10 * time.Minute},
			MaxGracePeriod:     &metav1.Duration{Duration: 10 * time.Minute},
			MaxShield:          &metav1.Duration{Duration: time.Hour},
			MoneyHorizon:       &metav1.Duration{Duration: 24 * time.Hour},
			NodeLossGrace:      &metav1.Duration{Duration: 30 * time.Second},
			NodeLossLimit:      "10%",
			Lottery:            "All", ForeignAntiAffinity: "Refuse",
			HealthPresets: []string{"NVSentinel"},
			SpareRate:     "0.5", OpportunisticRate: "0", LedgerRetention: &metav1.Duration{Duration: 720 * time.Hour},
			LedgerLimit:    200_000,
			FinishedRunTTL: &metav1.Duration{Duration: 168 * time.Hour}, PauseImage: "registry.k8s.io/pause:3.10.1",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", raw, diff)
		}
	}
}

func TestErrorsNameTheField(t *testing.T) {
	for _, test := range []struct{ raw, want string }{
		{`{"topologyLevel":["x"]}`, `unknown field "topologyLevel"`},
		{`{"topologyLevels":[]}`, "topologyLevels: Required value"},
		{`{"topologyLevels":["a","b","c","d","e","f","g","h","fabric.domain"]}`,
			"topologyLevels: Too many: 9: must have at most 8 items"},
		{`{"topologyLevels":["a b","fabric.domain"]}`, `topologyLevels[0]: Invalid value: "a b"`},
		{`{"topologyLevels":["fabric.domain","fabric.domain"]}`, `topologyLevels[1]: Duplicate value: "fabric.domain"`},
		{`{"topologyLevels":["rack"]}`, `fabricLevel: Invalid value: "fabric.domain": must be one of topologyLevels [rack]`},
		{`{"gpuResource":"gpu"}`, `gpuResource: Invalid value: "gpu": must be an extended resource such as nvidia.com/gpu`},
		{`{"gpuResource":["nvidia.com/gpu","tpu"]}`, `gpuResource[1]: Invalid value: "tpu": must be an extended resource`},
		{`{"gpuResource":["nvidia.com/gpu",""]}`, `gpuResource[1]: Invalid value: ""`},
		{`{"gpuResource":["nvidia.com/gpu","google.com/tpu","nvidia.com/gpu"]}`,
			`gpuResource[2]: Duplicate value: "nvidia.com/gpu"`},
		{`{"gpuResource":[]}`, "gpuResource: Required value: name a resource, or leave it out for nvidia.com/gpu"},
		{`{"gpuResource":"requests.nvidia.com/gpu"}`, "gpuResource: Invalid value"},
		{`{"gpuResource":"kubernetes.io/batch-cpu"}`, "gpuResource: Invalid value"},
		{`{"gpuResource":{"name":"nvidia.com/gpu"}}`,
			"gpuResource: must be the name of an extended resource, such as nvidia.com/gpu, or a list of names"},
		{`{"gpuResource":[1]}`, "gpuResource: must be the name of an extended resource"},
		{`{"flavorLabel":"-"}`, "flavorLabel"},
		{`{"gangDeadline":"0s"}`, `gangDeadline: Invalid value: "0s": must be at least 1s`},
		{`{"gangDeadline":"soon"}`, "soon"},
		{`{"pauseImage":"a b"}`, "pauseImage"},
		{`{"spareRate":"1.5"}`, `spareRate: Invalid value: "1.5"`},
		{`{"spareRate":"0.1234"}`, "spareRate"},
		{`{"opportunisticRate":"-0.1"}`, "opportunisticRate"},
		{`{"opportunisticRate":"half"}`, "opportunisticRate"},
		{`{"ledgerLimit":999}`, `ledgerLimit: Invalid value: 999: must be at least 1000`},
		{`{"ledgerRetention":"0s"}`, `ledgerRetention: Invalid value: "0s": must be at least 1s`},
		{`{"finishedRunTTL":"-1s"}`, `finishedRunTTL: Invalid value: "-1s": must be at least 0s`},
		{`{"noticePeriod":"-1s"}`, `noticePeriod: Invalid value: "-1s": must be at least 0s`},
		{`{"activationShield":"0s"}`, `activationShield: Invalid value: "0s": must be at least 1s`},
		{`{"nodeLossGrace":"0s"}`, `nodeLossGrace: Invalid value: "0s": must be at least 1s`},
		{`{"nodeLossLimit":"101%"}`, `nodeLossLimit: Invalid value: "101%": must be a percentage`},
		{`{"nodeLossLimit":"0.1"}`, `nodeLossLimit: Invalid value: "0.1": must be a percentage`},
		{`{"maxGracePeriod":"0s"}`, `maxGracePeriod: Invalid value: "0s": must be at least 1s`},
		{`{"maxShield":"0s"}`, `maxShield: Invalid value: "0s": must be at least 1s`},
		{`{"lottery":"never"}`, `lottery: Unsupported value: "never": supported values: "All", "Borrowed", "None"`},
		{`{"foreignAntiAffinity":"No"}`, `foreignAntiAffinity: Unsupported value: "No": supported values: "Refuse", "Allow"`},
		{`{"cutsPerHour":-1}`, "cutsPerHour: Invalid value: -1: must be at least 0"},
		{`{"healthPresets":["NVSentinel","Nagios"]}`,
			`healthPresets[1]: Unsupported value: "Nagios": supported values: "NVSentinel", "NodeProblemDetector"`},
		{`{"healthPresets":["nvsentinel"]}`, `healthPresets[0]: Unsupported value: "nvsentinel"`},
		{`{"healthPresets":["NVSentinel","NVSentinel"]}`, `healthPresets[1]: Duplicate value: "NVSentinel"`},
		{`{"nodeLossConditions":["XIDError","a b"]}`, `nodeLossConditions[1]: Invalid value: "a b"`},
		{`{"nodeLossConditions":["Ready"]}`, `nodeLossConditions[0]: Invalid value: "Ready"`},
		{`{"flavors":{"H100":[]}}`, "flavors[H100]: Required value"},
		{`{"flavors":{"H100":["x"],"A100":["x"]}}`,
			`flavors[H100][0]: Invalid value: "x": the label value means both A100 and H100`},
		{`{"kind":"OtherArgs"}`, `kind: Unsupported value: "OtherArgs"`},
		{`{"apiVersion":"v2"}`, `apiVersion: Unsupported value: "v2"`},
		{"gangDeadline: 1m\ngangDeadline: 2m", "already set"},
	} {
		_, err := Parse([]byte(test.raw))
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), Kind+": ") {
			t.Errorf("%s: error %q, want %q in it", test.raw, err, test.want)
		}
	}
}

// TestAllErrorsAtOnce has the operator mend a file in one go.
func TestAllErrorsAtOnce(t *testing.T) {
	_, err := Parse([]byte(`{"gangDeadline":"0s","spareRate":"2","pauseImage":"a b","flavors":{"H100":[]}}`))
	for _, field := range []string{"gangDeadline", "spareRate", "pauseImage", "flavors[H100]"} {
		if err == nil || !strings.Contains(err.Error(), field+": ") {
			t.Errorf("error %q does not name %s", err, field)
		}
	}
}

func TestFlavorOf(t *testing.T) {
	a, err := Parse([]byte("flavors: {H100-80GB: [NVIDIA-H100-80GB-HBM3, NVIDIA-H100-SXM]}"))
	if err != nil {
		t.Fatal(err)
	}
	for label, want := range map[string]string{"NVIDIA-H100-SXM": "H100-80GB", "A100": "A100"} {
		if got := a.FlavorOf(label); got != want {
			t.Errorf("label %s means %s, want %s", label, got, want)
		}
	}
}

func TestNodesAtOnce(t *testing.T) {
	for _, test := range []struct {
		limit string
		nodes int
		want  int
	}{{"10%", 1000, 100}, {"10%", 99, 9}, {"10%", 8, 3}, {"0%", 1000, 3}, {"100%", 20, 20}} {
		args, err := Parse([]byte(`{"nodeLossLimit":"` + test.limit + `"}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := args.NodesAtOnce(test.nodes); got != test.want {
			t.Errorf("%s of %d nodes is %d, want %d", test.limit, test.nodes, got, test.want)
		}
	}
}
