// Package published is what the scheduler tells everybody who can log in, in one ConfigMap: its configuration, so that
// no command has to be told it again, and how much of the fleet is free.
package published

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/davidlangworthy/jobtree/pkg/config"
)

// ConfigMap is the name of the ConfigMap, in the scheduler's namespace.
const ConfigMap = "jobtree-public"

// Keys of the ConfigMap: the plugin's arguments with their defaults filled in, as YAML, and a Fleet, as JSON.
const (
	KeyConfig = "config.yaml"
	KeyFleet  = "fleet.json"
)

// Data returns what the ConfigMap holds. The same arguments and the same fleet give the same bytes.
func Data(args *config.Args, fleet Fleet) (map[string]string, error) {
	configuration, err := yaml.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("the scheduler's configuration: %w", err)
	}
	summary, err := json.Marshal(fleet.Bounded())
	if err != nil {
		return nil, fmt.Errorf("the summary of the fleet: %w", err)
	}
	return map[string]string{KeyConfig: string(configuration), KeyFleet: string(summary)}, nil
}

// Args returns the arguments of the scheduler that has published the data of a ConfigMap. Fields that this program does
// not know are ignored, and those that the scheduler did not know have their defaults: either may be the newer one.
func Args(data map[string]string) (*config.Args, error) {
	text, ok := data[KeyConfig]
	if !ok {
		return nil, fmt.Errorf("ConfigMap %s has no key %s", ConfigMap, KeyConfig)
	}
	return config.ParseKnown([]byte(text))
}

// FleetOf returns the summary of the fleet in the data of a ConfigMap.
func FleetOf(data map[string]string) (Fleet, error) {
	text, ok := data[KeyFleet]
	if !ok {
		return Fleet{}, fmt.Errorf("ConfigMap %s has no key %s", ConfigMap, KeyFleet)
	}
	var fleet Fleet
	if err := json.Unmarshal([]byte(text), &fleet); err != nil {
		return Fleet{}, fmt.Errorf("ConfigMap %s, key %s: %w", ConfigMap, KeyFleet, err)
	}
	return fleet, nil
}
