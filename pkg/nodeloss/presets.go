package nodeloss

// Names of presets.
const (
	NVSentinel          = "NVSentinel"
	NodeProblemDetector = "NodeProblemDetector"
)

// Preset is a checker of nodes that many clusters run.
type Preset struct {
	Name string
	// Conditions are the types of node conditions that it writes and that are True on a fault.
	Conditions []string
	// Keeps is the annotation by which it says that it wants a node to be cordoned; empty for one that does not cordon.
	Keeps string
}

// Presets are the checkers that are known. NVSentinel's CSPMaintenance is left out: it announces maintenance, and the
// node works until then. node-problem-detector brings no checks of GPUs; these are the ones that two clouds give it:
// first AKS's, then those of Oracle's OKE that are about GPUs.
var Presets = []Preset{
	{NVSentinel, []string{
		"GpuMemWatch", "GpuThermalWatch", "GpuPcieWatch", "GpuNvlinkWatch", "GpuInforomWatch", "SysLogsXIDError",
		"SysLogsSXIDError", "SysLogsGPUFallenOff", "NVSwitchFatalError", "NVSwitchDown", "DCGMError",
	}, "quarantineHealthEventIsCordoned"},
	{NodeProblemDetector, []string{
		"GPUMissing", "NVLinkStatusInactive", "XIDErrors", "IBLinkFlapping", "GPUClockThrottling",
		"UnhealthyNvidiaDevicePlugin",
		"GpuCount", "GpuEcc", "GpuRowRemap", "GpuBus", "GpuPcie", "GpuFabricManager", "GpuBadPages", "GpuXid",
		"NvlinkSpeed", "DcgmiHealth", "Rocminfo",
	}, ""},
}

// PresetNames returns what a preset may be called.
func PresetNames() []string {
	var names []string
	for i := range Presets {
		names = append(names, Presets[i].Name)
	}
	return names
}

// ConditionsOf returns the conditions that the presets of some names list.
func ConditionsOf(names []string) []string {
	var conditions []string
	for _, name := range names {
		for i := range Presets {
			if p := &Presets[i]; p.Name == name {
				conditions = append(conditions, p.Conditions...)
			}
		}
	}
	return conditions
}
