package story

import (
	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Envelope is money for so many GPUs at a time.
func Envelope(name string, gpus int32, changes ...func(*rqv1.Envelope)) rqv1.Envelope {
	e := rqv1.Envelope{Name: name, Concurrency: gpus}
	for _, change := range changes {
		change(&e)
	}
	return e
}
