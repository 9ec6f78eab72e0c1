package group

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ReaderRole is the ClusterRole that says which kinds of others the scheduler may read, beside pods (R41).
const ReaderRole = "jobtree-group-reader"

// knownRules are what that role says as it is installed.
var knownRules = []rbacv1.PolicyRule{
	gets("apps", "deployments", "replicasets", "statefulsets"),
	gets("argoproj.io", "cronworkflows", "workflows"),
	gets("batch", "cronjobs", "jobs"),
	gets("jobset.x-k8s.io", "jobsets"),
	gets(apiKubeflow, "jaxjobs", "mpijobs", "notebooks", "paddlejobs", "pytorchjobs", "tfjobs", "xgboostjobs"),
	gets("leaderworkerset.x-k8s.io", "leaderworkersets"),
	gets("ray.io", "rayclusters", "raycronjobs", "rayjobs", "rayservices"),
	gets("scheduling.k8s.io", "workloads"),
	gets("scheduling.x-k8s.io", "workloads"),
	{APIGroups: []string{"scheduling.k8s.io", "scheduling.x-k8s.io"}, Resources: []string{"podgroups"},
		Verbs: []string{"get", "list", "watch"}},
	gets("serving.kserve.io", "inferenceservices"),
	gets("sparkoperator.k8s.io", "scheduledsparkapplications", "sparkapplications"),
	gets("tekton.dev", "pipelineruns", "taskruns"),
	gets(apiTrainer, "trainjobs"),
	gets("workload.codeflare.dev", "appwrappers"),
}

func gets(api string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{api}, Resources: resources, Verbs: []string{"get"}}
}

// ReadsKnown reports whether the scheduler may read an object of a kind, unless an administrator has said otherwise.
func ReadsKnown(k Key) bool { return ReadsBy(knownRules)(k) }

// ReadsBy returns what reports whether the scheduler may read an object of a kind, by the rules of its ClusterRole.
func ReadsBy(rules []rbacv1.PolicyRule) func(Key) bool {
	return func(k Key) bool {
		if k.API == "" && k.Kind == kindPod {
			return true
		}
		of, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: k.API, Kind: k.Kind})
		return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
			return has(r.Verbs, "get") && has(r.APIGroups, k.API) && has(r.Resources, of.Resource) && len(r.ResourceNames) == 0
		})
	}
}

func has(all []string, one string) bool {
	return slices.Contains(all, one) || slices.Contains(all, rbacv1.VerbAll)
}
