// Package dump is how an administrator asks the scheduler for all that it knows of one Run, as data that a decision can
// be made on again: by a ConfigMap that says which Run, to which the scheduler adds the answer.
package dump

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ConfigMap is the name of the ConfigMap, in the scheduler's namespace.
const ConfigMap = "jobtree-dump"

// Keys of the ConfigMap: the Run that is asked for, as namespace/name, why there is no answer, and the answer, JSON
// that is compressed since a wide Run has many pods.
const (
	keyRun     = "run"
	keyProblem = "problem"
	keyAnswer  = "observed.json.gz"
)

// most is how large an answer may be: a ConfigMap holds no more than a MiB.
const most = 1000 << 10

// Ask makes a ConfigMap ask for a Run.
func Ask(c *corev1.ConfigMap, run types.NamespacedName) {
	c.Data = map[string]string{keyRun: run.String()}
}

// Asked returns the Run that a ConfigMap asks for; false when it asks for none, or has its answer.
func Asked(c *corev1.ConfigMap) (types.NamespacedName, bool) {
	namespace, name, ok := strings.Cut(c.Data[keyRun], "/")
	return types.NamespacedName{Namespace: namespace, Name: name}, ok && c.Data[keyProblem] == "" &&
		c.BinaryData[keyAnswer] == nil
}

// Answer adds what is known of the Run, or why nothing is. What is known may be told in several ways, the fullest
// first: it is told in the first that there is room for.
func Answer(c *corev1.ConfigMap, problem error, known ...any) {
	for _, observed := range known {
		if problem != nil {
			break
		}
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		problem = errors.Join(json.NewEncoder(w).Encode(observed), w.Close())
		if problem == nil && packed.Len() <= most {
			c.BinaryData = map[string][]byte{keyAnswer: packed.Bytes()}
			return
		}
	}
	if problem == nil {
		problem = errors.New("the answer is too large for a ConfigMap")
	}
	c.Data[keyProblem] = problem.Error()
}

// Read returns the answer as JSON; nil when there is none yet.
func Read(c *corev1.ConfigMap) ([]byte, error) {
	if problem := c.Data[keyProblem]; problem != "" {
		return nil, errors.New(problem)
	}
	packed := c.BinaryData[keyAnswer]
	if packed == nil {
		return nil, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
