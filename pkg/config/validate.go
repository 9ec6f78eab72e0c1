package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

var (
	imageReference = regexp.MustCompile(`^[^\s]+$`)
	percentage     = regexp.MustCompile(`^(100|[1-9]?[0-9])%$`)
)

// leastLedgerLimit is the least value of ledgerLimit.
const leastLedgerLimit = 1000

// validate returns all that is wrong with the arguments, defaults filled in.
func (a *Args) validate() field.ErrorList {
	return slices.Concat(a.validateKind(), a.validateTopology(), a.validateDurations(), a.validateAmounts(),
		a.validatePresets(), a.validateConditions(), a.validateFlavors())
}

func (a *Args) validateKind() (errs field.ErrorList) {
	if a.Kind != "" && a.Kind != Kind {
		errs = append(errs, field.NotSupported(field.NewPath("kind"), a.Kind, []string{Kind}))
	}
	if version := rqv1.GroupVersion.String(); a.APIVersion != "" && a.APIVersion != version {
		errs = append(errs, field.NotSupported(field.NewPath("apiVersion"), a.APIVersion, []string{version}))
	}
	return errs
}

// validateTopology checks the names by which nodes are known: labels and the resources that are counted.
func (a *Args) validateTopology() (errs field.ErrorList) {
	levels := field.NewPath("topologyLevels")
	switch n := len(a.TopologyLevels); {
	case n == 0:
		errs = append(errs, field.Required(levels, "name at least the label key of the fast-fabric domain"))
	case n > topology.MaxLevels:
		errs = append(errs, field.TooMany(levels, n, topology.MaxLevels))
	}
	for i, key := range a.TopologyLevels {
		errs = append(errs, validateLabelKey(levels.Index(i), key)...)
		if slices.Contains(a.TopologyLevels[:i], key) {
			errs = append(errs, field.Duplicate(levels.Index(i), key))
		}
	}
	if !slices.Contains(a.TopologyLevels, a.FabricLevel) {
		errs = append(errs, field.Invalid(field.NewPath("fabricLevel"), a.FabricLevel,
			fmt.Sprintf("must be one of topologyLevels %v", a.TopologyLevels)))
	}
	errs = append(errs, validateLabelKey(field.NewPath("flavorLabel"), a.FlavorLabel)...)
	return append(errs, a.GPUResource.validate(field.NewPath("gpuResource"))...)
}

func validateLabelKey(path *field.Path, key string) (errs field.ErrorList) {
	for _, problem := range validation.IsQualifiedName(key) {
		errs = append(errs, field.Invalid(path, key, problem))
	}
	return errs
}

func (a *Args) validateDurations() (errs field.ErrorList) {
	for _, d := range a.durations() {
		if is := (*d.field).Duration; is < d.least {
			errs = append(errs, field.Invalid(field.NewPath(d.name), is.String(), fmt.Sprintf("must be at least %s", d.least)))
		}
	}
	return errs
}

// rateForm says what a rate looks like.
const rateForm = "must be a decimal from 0 to 1 with at most three places"

// validateAmounts checks rates, limits and the image of pods without a template.
func (a *Args) validateAmounts() (errs field.ErrorList) {
	if _, err := budget.ParseRate(a.SpareRate); err != nil {
		errs = append(errs, field.Invalid(field.NewPath("spareRate"), a.SpareRate, rateForm))
	}
	if _, err := budget.ParseRate(a.OpportunisticRate); err != nil {
		errs = append(errs, field.Invalid(field.NewPath("opportunisticRate"), a.OpportunisticRate, rateForm))
	}
	if !imageReference.MatchString(a.PauseImage) {
		errs = append(errs, field.Invalid(field.NewPath("pauseImage"), a.PauseImage, "must be an image reference"))
	}
	if !percentage.MatchString(a.NodeLossLimit) {
		errs = append(errs, field.Invalid(field.NewPath("nodeLossLimit"), a.NodeLossLimit,
			"must be a percentage from 0% to 100%"))
	}
	if a.CutsPerHour != nil && *a.CutsPerHour < 0 {
		errs = append(errs, field.Invalid(field.NewPath("cutsPerHour"), *a.CutsPerHour,
			"must be at least 0, or left out for no limit"))
	}
	if a.LedgerLimit < leastLedgerLimit {
		errs = append(errs, field.Invalid(field.NewPath("ledgerLimit"), a.LedgerLimit,
			fmt.Sprintf("must be at least %d", leastLedgerLimit)))
	}
	if known := []string{LotteryAll, LotteryBorrowed, LotteryNone}; !slices.Contains(known, a.Lottery) {
		errs = append(errs, field.NotSupported(field.NewPath("lottery"), a.Lottery, known))
	}
	if known := []string{AntiAffinityRefuse, AntiAffinityAllow}; !slices.Contains(known, a.ForeignAntiAffinity) {
		errs = append(errs, field.NotSupported(field.NewPath("foreignAntiAffinity"), a.ForeignAntiAffinity, known))
	}
	return errs
}

func (a *Args) validatePresets() (errs field.ErrorList) {
	path := field.NewPath("healthPresets")
	for i, name := range a.HealthPresets {
		if known := nodeloss.PresetNames(); !slices.Contains(known, name) {
			errs = append(errs, field.NotSupported(path.Index(i), name, known))
		} else if slices.Contains(a.HealthPresets[:i], name) {
			errs = append(errs, field.Duplicate(path.Index(i), name))
		}
	}
	return errs
}

func (a *Args) validateConditions() (errs field.ErrorList) {
	path := field.NewPath("nodeLossConditions")
	for i, kind := range a.NodeLossConditions {
		errs = append(errs, validateLabelKey(path.Index(i), kind)...)
		if kind == string(corev1.NodeReady) {
			errs = append(errs, field.Invalid(path.Index(i), kind,
				"it is True on healthy nodes, and its absence counts anyway"))
		}
	}
	return errs
}

func (a *Args) validateFlavors() (errs field.ErrorList) {
	path := field.NewPath("flavors")
	meaning := map[string]string{}
	for _, flavor := range slices.Sorted(maps.Keys(a.Flavors)) {
		if len(a.Flavors[flavor]) == 0 {
			errs = append(errs, field.Required(path.Key(flavor), "list the label values that mean it"))
		}
		for i, value := range a.Flavors[flavor] {
			if other, ok := meaning[value]; ok {
				errs = append(errs, field.Invalid(path.Key(flavor).Index(i), value,
					fmt.Sprintf("the label value means both %s and %s", other, flavor)))
			}
			meaning[value] = flavor
		}
	}
	return errs
}
