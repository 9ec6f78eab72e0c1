package book

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// forgetWithheld drops a pod that is gone.
func (s *seating) forgetWithheld(pod types.UID) {
	s.beside.mu.Lock()
	defer s.beside.mu.Unlock()
	delete(s.beside.withheld, pod)
}

func (s *seating) withhold(pod *corev1.Pod) {
	s.beside.mu.Lock()
	defer s.beside.mu.Unlock()
	s.beside.withheld[pod.UID] = pod
}
