package world

import (
	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/published"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// Remarks is what is to be said of the shape of a Run on the fleet that the scheduler has published. Who pays for the
// Run is not asked, which says so where that has a part in the size of its pods.
func Remarks(run *rqv1.Run, fleet published.Fleet, args *config.Args) []string {
	templateGPUs := 0
	if run.Spec.Template != nil {
		templateGPUs = rank.PodGPUs(&run.Spec.Template.Spec, args.GPUResource...)
	}
	there := topology.NewBlocks(fleet.NodesOf(run.Spec.Resources.GPUType)...)
	d, refusal := plan.DemandOf(&run.Spec, templateGPUs, there, nil)
	if refusal != nil {
		return nil
	}
	texts := plan.Remarks(&run.Spec, templateGPUs, d, there)
	if run.Spec.Resources.GPUsPerPod == nil && templateGPUs == 0 {
		for i := range texts {
			texts[i] = "by the nodes alone, " + texts[i]
		}
	}
	return texts
}
