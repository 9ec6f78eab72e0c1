package session

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// fieldManager is the name under which the CLI writes.
const fieldManager = "kubectl-runs"

// Ours holds the kinds that can be submitted; known adds those that the CLI reads besides.
var (
	Ours  = newScheme(rqv1.AddToScheme)
	known = newScheme(rqv1.AddToScheme, corev1.AddToScheme, authenticationv1.AddToScheme,
		authorizationv1.AddToScheme, rbacv1.AddToScheme, schedulingv1.AddToScheme)
)

func newScheme(adders ...func(*runtime.Scheme) error) *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range adders {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

// resources maps the kinds in use to their resources, which saves every command a round of discovery.
func resources() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Run", "Lease", "Reservation"} {
		mapper.Add(rqv1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(rqv1.GroupVersion.WithKind("Budget"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Event"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), meta.RESTScopeRoot)
	mapper.Add(schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"), meta.RESTScopeRoot)
	mapper.Add(authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"), meta.RESTScopeRoot)
	mapper.Add(authorizationv1.SchemeGroupVersion.WithKind("LocalSubjectAccessReview"), meta.RESTScopeNamespace)
	mapper.Add(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"), meta.RESTScopeRoot)
	mapper.Add(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectRulesReview"), meta.RESTScopeRoot)
	return mapper
}

// RESTConfig returns how the chosen cluster is reached.
func (s *Session) RESTConfig() (*rest.Config, error) {
	config, err := s.Flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // the server bounds its clients by priority and fairness
	config.WarningHandler = rest.NewWarningWriter(s.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	return config, nil
}

// Connect returns a client of the chosen cluster and the namespace to work in; explicit is true when -n names it.
func (s *Session) Connect() (c client.WithWatch, namespace string, explicit bool, err error) {
	namespace, explicit, err = s.Flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, "", false, err
	}
	if s.namespace != "" {
		namespace, explicit = s.namespace, true
	}
	config, err := s.RESTConfig()
	if err != nil {
		return nil, "", false, err
	}
	c, err = client.NewWithWatch(config, client.Options{
		Scheme:          known,
		Mapper:          resources(),
		FieldOwner:      fieldManager,
		FieldValidation: "Strict",
	})
	return c, namespace, explicit, err
}
