package integration

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// classes has two PriorityClasses be created through kubectl, and returns their names.
func (s *site) classes() (high, low string) {
	s.t.Helper()
	high, low = s.namespace+"-high", s.namespace+"-low"
	s.class(high, 2000000)
	s.class(low, 1000000)
	return high, low
}

func (s *site) class(name string, value int) {
	s.t.Helper()
	s.t.Cleanup(func() {
		err := s.kube.SchedulingV1().PriorityClasses().Delete(context.Background(), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			s.t.Error(err)
		}
	})
	mustCommand(s.t, s.ControlPlane, fmt.Sprintf("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\n"+
		"metadata: {name: %s}\nvalue: %d\nglobalDefault: false\n", name, value), "apply -f -")
}

// ranFor waits until a Run has run for a while: its status tells in whole seconds since when.
func (s *site) ranFor(name string, least time.Duration) {
	s.t.Helper()
	eventually(s.t, "Run "+name+" has run for "+least.String(), func() error {
		run, err := s.get(name)
		if err != nil {
			return err
		}
		if at, runs := run.StartedAt(); !runs || time.Since(at) < least {
			return fmt.Errorf("it is %s since %s", run.Status.Phase, at)
		}
		return nil
	})
}
