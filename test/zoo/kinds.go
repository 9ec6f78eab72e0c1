package zoo

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// loss is what a controller does about one of its pods that has failed, or is gone.
type loss int

const (
	// again: it makes that one again.
	again loss = iota
	// all: it deletes the others of the pod's scope, and makes all of them again.
	all
	// never: it makes none.
	never
)

// kind is a kind of controller.
type kind struct {
	apiVersion, name string
	// makes are what it makes of an object, others with controllers of their own or pods; nil for a kind that nobody
	// makes anything of.
	makes func(o *object, seen *sight) []*object
	// lost is what it does about a pod that is lost, and scope the label whose value is that of the pods which are made
	// again with it.
	lost  func(o *object) loss
	scope string
	// builtIn says that this controller runs on a real control plane. That of CronJobs would wait for the night.
	builtIn bool
	// rolls says that it makes its pods anew, some at a time, when their template changes.
	rolls bool
}

// kinds are what controllers write on pods, and what they do when one goes. A kind that is not here makes no pods.
var kinds = []kind{
	{apiVersion: "batch/v1", name: "Job", makes: ofJob, lost: jobLoses, builtIn: true},
	{apiVersion: "batch/v1", name: "CronJob", makes: ofCronJob},
	{apiVersion: "apps/v1", name: "Deployment", makes: ofDeployment, builtIn: true, rolls: true},
	{apiVersion: "apps/v1", name: "ReplicaSet", makes: ofReplicaSet, builtIn: true},
	{apiVersion: "apps/v1", name: "StatefulSet", makes: ofStatefulSet, builtIn: true, rolls: true},
	{apiVersion: "jobset.x-k8s.io/v1alpha2", name: "JobSet", makes: ofJobSet, builtIn: true,
		scope: "jobset.sigs.k8s.io/jobset-name"},
	{apiVersion: "leaderworkerset.x-k8s.io/v1", name: "LeaderWorkerSet", makes: ofLWS, lost: lwsLoses, builtIn: true,
		scope: "leaderworkerset.sigs.k8s.io/group-index"},
	{apiVersion: "ray.io/v1", name: "RayCluster", makes: ofRayCluster},
	{apiVersion: "ray.io/v1", name: "RayJob", makes: ofRayJob},
	{apiVersion: "ray.io/v1", name: "RayService", makes: ofRayService},
	{apiVersion: "kubeflow.org/v2beta1", name: "MPIJob", makes: ofMPIJob},
	{apiVersion: "kubeflow.org/v1", name: "PyTorchJob", makes: ofKubeflow("pytorchjob-controller", "pytorchReplicaSpecs")},
	{apiVersion: "kubeflow.org/v1", name: "TFJob", makes: ofKubeflow("tfjob-controller", "tfReplicaSpecs")},
	{apiVersion: "kubeflow.org/v1", name: "JAXJob", makes: ofKubeflow("jaxjob-controller", "jaxReplicaSpecs")},
	{apiVersion: "kubeflow.org/v1", name: "XGBoostJob", makes: ofKubeflow("xgboostjob-controller", "xgbReplicaSpecs")},
	{apiVersion: "kubeflow.org/v1", name: "PaddleJob", makes: ofKubeflow("paddlejob-controller", "paddleReplicaSpecs")},
	{apiVersion: "trainer.kubeflow.org/v1alpha1", name: "TrainJob", makes: ofTrainJob},
	{apiVersion: "trainer.kubeflow.org/v1alpha1", name: "TrainingRuntime"},
	{apiVersion: "workload.codeflare.dev/v1beta2", name: "AppWrapper", makes: ofAppWrapper},
	{apiVersion: "argoproj.io/v1alpha1", name: "Workflow", makes: ofWorkflow, lost: isNever},
	{apiVersion: "sparkoperator.k8s.io/v1beta2", name: "SparkApplication", makes: ofSpark},
	{apiVersion: "kubeflow.org/v1", name: "Notebook", makes: ofNotebook},
	{apiVersion: "serving.kserve.io/v1beta1", name: "InferenceService", makes: ofInferenceService},
	{apiVersion: "batch.volcano.sh/v1alpha1", name: "Job", makes: ofVolcano},
	{apiVersion: "scheduling.x-k8s.io/v1alpha1", name: "PodGroup"},
	{apiVersion: "scheduling.k8s.io/v1beta1", name: "PodGroup"},
	{apiVersion: "v1", name: "Pod", lost: isNever},
}

// Kinds are those that API servers serve where these workloads run.
func Kinds() (out []schema.GroupVersionKind) {
	for i := range kinds {
		out = append(out, schema.FromAPIVersionAndKind(kinds[i].apiVersion, kinds[i].name))
	}
	return out
}

// kindOf returns the controller of an object; nil where nobody makes anything of it.
func kindOf(o *object) *kind {
	for i := range kinds {
		if k := &kinds[i]; k.name == o.GetKind() && k.apiVersion == o.GetAPIVersion() {
			return k
		}
	}
	return nil
}

func isNever(*object) loss { return never }
