package controllers

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
)

// drawing is the lottery of a process.
func drawing(t *testing.T, s *server) (*lottery, *clocktesting.FakeClock) {
	t.Helper()
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	clock := clocktesting.NewFakeClock(noon)
	return &lottery{book: book.New(args), kube: s.kube, clock: clock}, clock
}

// TestTheLotterysKey is made once, is long, and is never written over: nonces that were committed to follow from it.
func TestTheLotterysKey(t *testing.T) {
	secret := func(key string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: lotteryKey},
			Data: map[string][]byte{keyField: []byte(key)}}
	}
	good := strings.Repeat("k", keyBytes)
	for name, test := range map[string]struct {
		stored *corev1.Secret
		faults []fault
		refuse string // what the error says
		later  string // and what it says the next time, when all answers are as they should be
	}{
		"there is none":   {},
		"there is one":    {stored: secret(good)},
		"it is too short": {stored: secret("k"), refuse: "holds 1 bytes", later: "delete the Secret"},
		"the Secret holds nothing": {stored: &corev1.Secret{ObjectMeta: secret("").ObjectMeta},
			refuse: "holds 0 bytes", later: "holds 0 bytes"},
		"it may not be read": {stored: secret(good),
			faults: []fault{{on: "get secrets", err: forbidden}}, refuse: "quota"},
		"it may not be made": {faults: []fault{{on: "create secrets", err: forbidden}}, refuse: "quota"},
		"it is made, and the answer is an error": {
			faults: []fault{{on: "create secrets", err: broken500, stored: true}}, refuse: "etcd"},
		"another process makes it meanwhile": {stored: secret(good),
			faults: []fault{{on: "get secrets", err: notFound, once: true}},
			refuse: "already exists"},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []runtime.Object
			if test.stored != nil {
				objects = append(objects, test.stored)
			}
			s := newServer(t, objects...)
			l, _ := drawing(t, s)
			s.faults = test.faults
			check(t, l.readKey(t.Context()), test.refuse)
			s.faults = nil
			check(t, l.readKey(t.Context()), test.later)
			kept, err := s.kube.CoreV1().Secrets(Namespace).Get(t.Context(), lotteryKey, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if key := string(kept.Data[keyField]); test.stored != nil && key != string(test.stored.Data[keyField]) ||
				test.stored == nil && len(key) != keyBytes {
				t.Errorf("stored is %q", key)
			}
			if writes := s.written(); len(writes) > 1 || test.stored != nil && len(writes) > 0 {
				t.Errorf("written: %v", writes)
			}
		})
	}
}

// check has an error say something; nothing, where there is to be none.
func check(t *testing.T, err error, says string) {
	t.Helper()
	if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
		t.Errorf("%v, want %q", err, says)
	}
}

// TestTheKeyIsAwaited until somebody has mended the Secret, and no longer.
func TestTheKeyIsAwaited(t *testing.T) {
	s := newServer(t)
	l, clock := drawing(t, s)
	s.faults = []fault{{on: "get secrets", err: broken500, once: true}, {on: "create secrets", err: forbidden, once: true}}
	over := make(chan struct{})
	go func() {
		defer close(over)
		l.awaitKey(t.Context())
	}()
	awaitWaiters(clock)
	for range 2 {
		tick(clock, 5*time.Second)
		if wrote := s.written(); len(wrote) > 0 {
			t.Errorf("written too soon: %v", wrote)
		}
	}
	clock.Step(5 * time.Second)
	<-over
	if wrote := s.written(); len(wrote) != 1 {
		t.Errorf("written: %v", wrote)
	}
}
