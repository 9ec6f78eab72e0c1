package session

import (
	"errors"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// parameters puts the options of a request into its address.
var parameters = runtime.NewParameterCodec(known)

// PodStream prepares a request for a stream of a pod, such as its log, with options such as PodLogOptions.
func PodStream(config *rest.Config, verb string, pod *corev1.Pod, stream string,
	options runtime.Object) (*rest.Request, error) {
	of := rest.CopyConfig(config)
	of.GroupVersion, of.APIPath = &corev1.SchemeGroupVersion, "/api"
	of.NegotiatedSerializer = serializer.NewCodecFactory(known).WithoutConversion()
	c, err := rest.RESTClientFor(of)
	if err != nil {
		return nil, err
	}
	return c.Verb(verb).Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource(stream).
		VersionedParams(options, parameters), nil
}

// NodeUnreached reports whether the API server could not reach the kubelet of a pod's node.
func NodeUnreached(err error) bool {
	var own *url.Error
	if errors.As(err, &own) {
		return false // the API server itself has not been reached
	}
	text := err.Error()
	return strings.Contains(text, "dial tcp") || strings.Contains(text, "no such host")
}
