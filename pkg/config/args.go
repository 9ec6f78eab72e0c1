package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
)

// Kind of the plugin's arguments in a KubeSchedulerConfiguration.
const Kind = "JobtreeArgs"

// Args are the plugin's arguments, kind JobtreeArgs. Every field is optional.
type Args struct {
	metav1.TypeMeta `json:",inline"`

	// TopologyLevels are node label keys, widest first (R11). Default: region, cluster, fabric.domain.
	TopologyLevels []string `json:"topologyLevels,omitempty"`
	// FabricLevel is the one of TopologyLevels that a group may not leave (R12). Default: fabric.domain.
	FabricLevel string `json:"fabricLevel,omitempty"`
	// GPUResource names the extended resources that are counted: one, or a list. A node has one of them, and so have the
	// nodes of a GPU type, whose Runs' pods request it. Default: nvidia.com/gpu.
	GPUResource Resources `json:"gpuResource"`
	// FlavorLabel is the node label that holds the GPU type. Default: gpu.flavor.
	FlavorLabel string `json:"flavorLabel,omitempty"`
	// Flavors maps a gpuType to the label values that mean it. Default: the value is the gpuType.
	Flavors map[string][]string `json:"flavors,omitempty"`
	// GangDeadline is the longest that a gang may hold GPUs before all of it is bound. Default: 2m.
	GangDeadline *metav1.Duration `json:"gangDeadline,omitempty"`
	// ReservationLead is the time from a refusal to the activation of its Reservation when nothing frees earlier (R17).
	// Default: 15m.
	ReservationLead *metav1.Duration `json:"reservationLead,omitempty"`
	// WindowDelay is how long after a budget window opens a Reservation for it activates (R17). Default: 10s.
	WindowDelay *metav1.Duration `json:"windowDelay,omitempty"`
	// NoticePeriod is the time that a pod which is cut has to end, unless its own grace period is longer (R19). Default:
	// 30s.
	NoticePeriod *metav1.Duration `json:"noticePeriod,omitempty"`
	// ActivationShield is how long a Run that was started by activation, or was drawn in a lottery before, is not cut when
	// it declares no checkpoint (R22); at least 1s. Default: 10m.
	ActivationShield *metav1.Duration `json:"activationShield,omitempty"`
	// MaxGracePeriod is the longest grace period that a pod of a Run is made with, whatever its template asks for (R37);
	// at least 1s. Default: 10m.
	MaxGracePeriod *metav1.Duration `json:"maxGracePeriod,omitempty"`
	// MaxShield is the longest that a Run is kept from cuts, whatever checkpoint interval it declares (R22); at least 1s.
	// Default: 1h.
	MaxShield *metav1.Duration `json:"maxShield,omitempty"`
	// CutsPerHour is how many Runs activations may end or shrink within an hour (R36); at least 0. One that needs more
	// waits until nobody has been cut for an hour. Default: no limit.
	CutsPerHour *int32 `json:"cutsPerHour,omitempty"`
	// Lottery says which Runs may be drawn to make room for others (R20): All, Borrowed for those of which some GPUs are
	// not paid by envelopes of their own owner within what these allow, or None. Default: All.
	Lottery string `json:"lottery,omitempty"`
	// MoneyHorizon is how far off the date of a Run that waits may be for what it is to be paid from to be kept from those
	// who come after it (R18); 0 for no date at all. Default: 24h.
	MoneyHorizon *metav1.Duration `json:"moneyHorizon,omitempty"`
	// ForeignAntiAffinity says what becomes of pods that no Run made, ask for GPUs and require pods of other namespaces to
	// keep away, by another label than one which their controller writes: Refuse holds them back, Allow places them.
	// Default: Refuse.
	ForeignAntiAffinity string `json:"foreignAntiAffinity,omitempty"`
	// SpareRate is what a GPU-hour of a spare is charged, and OpportunisticRate one of opportunistic work: decimals from 0
	// to 1 with at most three places (R7). Defaults: "0.5" and "0".
	SpareRate         string `json:"spareRate,omitempty"`
	OpportunisticRate string `json:"opportunisticRate,omitempty"`
	// NodeLossGrace is how long a node may be not Ready, or its kubelet's lease not be renewed, before it counts as lost
	// (R25); at least 1s. A kubelet renews its lease every 10s, and one renewal may take 10s more to time out. Default:
	// 30s.
	NodeLossGrace *metav1.Duration `json:"nodeLossGrace,omitempty"`
	// NodeLossLimit is the share of the nodes with GPUs, a percentage from 0% to 100%, that may show a sign of loss at
	// once: while more than that, and more than three, do, none of them is taken for lost by such a sign (R25). Default:
	// 10%.
	NodeLossLimit string `json:"nodeLossLimit,omitempty"`
	// HealthPresets are checkers of nodes whose conditions mean, when they are True, that the node is lost (R25):
	// NVSentinel, NodeProblemDetector. An empty list is none of them. Default: NVSentinel.
	HealthPresets []string `json:"healthPresets"`
	// NodeLossConditions are types of node conditions that mean, when they are True, that the node is lost (R25). Default:
	// none.
	NodeLossConditions []string `json:"nodeLossConditions,omitempty"`
	// OpportunisticGrace is the time that a shard of an opportunistic Run has to end when its GPUs are needed, unless its
	// own grace period is shorter (R15). Default: 5s.
	OpportunisticGrace *metav1.Duration `json:"opportunisticGrace,omitempty"`
	// LedgerRetention is the age at which closed Leases go, once they are settled. Default: 720h.
	LedgerRetention *metav1.Duration `json:"ledgerRetention,omitempty"`
	// LedgerLimit is how many closed Leases are kept, at least 1000: of more, those of the Budgets that have most go
	// before they are so old, the earliest first, once they are an hour old. Default: 200000.
	LedgerLimit int32 `json:"ledgerLimit,omitempty"`
	// FinishedRunTTL is how long after its end a Run is deleted that does not say so itself (R39); 0 for never. Default:
	// 168h.
	FinishedRunTTL *metav1.Duration `json:"finishedRunTTL,omitempty"`
	// PauseImage is the image of pods of Runs without a template. Default: registry.k8s.io/pause:3.10.1.
	PauseImage string `json:"pauseImage,omitempty"`
}

// Values of Lottery.
const (
	LotteryAll      = "All"
	LotteryBorrowed = "Borrowed"
	LotteryNone     = "None"
)

// Values of ForeignAntiAffinity.
const (
	AntiAffinityRefuse = "Refuse"
	AntiAffinityAllow  = "Allow"
)

// Parse decodes arguments strictly, fills the defaults in and validates them. Empty input gives the defaults.
func Parse(raw []byte) (*Args, error) { return parse(raw, true) }

// ParseKnown is Parse, but for fields that it does not know: it ignores them.
func ParseKnown(raw []byte) (*Args, error) { return parse(raw, false) }

func parse(raw []byte, strict bool) (*Args, error) {
	args := &Args{}
	if len(raw) > 0 && string(raw) != "null" {
		text, err := yaml.YAMLToJSONStrict(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", Kind, err)
		}
		decoder := json.NewDecoder(strings.NewReader(string(text)))
		if strict {
			decoder.DisallowUnknownFields()
		}
		if err := decoder.Decode(args); err != nil {
			return nil, fmt.Errorf("%s: %w", Kind, err)
		}
	}
	args.setDefaults()
	if err := args.validate().ToAggregate(); err != nil {
		return nil, fmt.Errorf("%s: %w", Kind, err)
	}
	return args, nil
}

func (a *Args) setDefaults() {
	if a.HealthPresets == nil { // an empty one means none
		a.HealthPresets = []string{nodeloss.NVSentinel}
	}
	if a.GPUResource == nil {
		a.GPUResource = Resources{"nvidia.com/gpu"}
	}
	if a.TopologyLevels == nil {
		a.TopologyLevels = []string{"region", "cluster", "fabric.domain"}
	}
	if len(a.Flavors) == 0 { // an empty one says what none says
		a.Flavors = nil
	}
	if len(a.NodeLossConditions) == 0 {
		a.NodeLossConditions = nil
	}
	setDefault(&a.Lottery, LotteryAll)
	setDefault(&a.ForeignAntiAffinity, AntiAffinityRefuse)
	setDefault(&a.FabricLevel, "fabric.domain")
	setDefault(&a.FlavorLabel, "gpu.flavor")
	setDefault(&a.PauseImage, "registry.k8s.io/pause:3.10.1")
	setDefault(&a.SpareRate, "0.5")
	setDefault(&a.OpportunisticRate, "0")
	setDefault(&a.NodeLossLimit, "10%")
	if a.LedgerLimit == 0 {
		a.LedgerLimit = 200_000
	}
	for _, d := range a.durations() {
		if *d.field == nil {
			*d.field = &metav1.Duration{Duration: d.byDefault}
		}
	}
}

// duration is a field that holds one.
type duration struct {
	name             string
	field            **metav1.Duration
	byDefault, least time.Duration
}

func (a *Args) durations() []duration {
	return []duration{
		{"gangDeadline", &a.GangDeadline, 2 * time.Minute, time.Second},
		{"reservationLead", &a.ReservationLead, 15 * time.Minute, time.Second},
		{"windowDelay", &a.WindowDelay, 10 * time.Second, 0},
		{"noticePeriod", &a.NoticePeriod, 30 * time.Second, 0},
		{"activationShield", &a.ActivationShield, 10 * time.Minute, time.Second},
		{"maxGracePeriod", &a.MaxGracePeriod, 10 * time.Minute, time.Second},
		{"maxShield", &a.MaxShield, time.Hour, time.Second},
		{"moneyHorizon", &a.MoneyHorizon, 24 * time.Hour, 0},
		{"nodeLossGrace", &a.NodeLossGrace, 30 * time.Second, time.Second},
		{"opportunisticGrace", &a.OpportunisticGrace, 5 * time.Second, 0},
		{"ledgerRetention", &a.LedgerRetention, 720 * time.Hour, time.Second},
		{"finishedRunTTL", &a.FinishedRunTTL, 168 * time.Hour, 0},
	}
}

func setDefault(field *string, value string) {
	if *field == "" {
		*field = value
	}
}

// Rates returns the prices of what is not an active rank.
func (a *Args) Rates() budget.Rates {
	spare, _ := budget.ParseRate(a.SpareRate) // validated
	opportunistic, _ := budget.ParseRate(a.OpportunisticRate)
	return budget.Rates{Spare: spare, Opportunistic: opportunistic}
}

// LossConditions returns the types of node conditions that mean, when they are True, that a node is lost (R25).
func (a *Args) LossConditions() []string {
	return slices.Concat(nodeloss.ConditionsOf(a.HealthPresets), a.NodeLossConditions)
}

// NodesAtOnce returns how many of a number of nodes with GPUs may show a sign of loss at once (R25): the limit's share
// of them, rounded down, and a few at least.
func (a *Args) NodesAtOnce(nodes int) int {
	percent, _ := strconv.Atoi(strings.TrimSuffix(a.NodeLossLimit, "%")) // validated
	return max(nodeloss.Few, nodes*percent/100)
}

// FlavorOf returns the gpuType that a value of the flavor label means.
func (a *Args) FlavorOf(labelValue string) string {
	for flavor, values := range a.Flavors {
		if slices.Contains(values, labelValue) {
			return flavor
		}
	}
	return labelValue
}
