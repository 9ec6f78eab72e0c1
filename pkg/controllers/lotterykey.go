package controllers

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/davidlangworthy/jobtree/pkg/book"
)

const (
	// lotteryKey is the Secret that holds the key which nonces are made of, and keyBytes its length.
	lotteryKey = "lottery-key"
	keyField   = "key"
	keyBytes   = 32
)

// lottery gives the book the key that nonces are made of.
type lottery struct {
	book  *book.Book
	kube  kubernetes.Interface
	clock clock.Clock
}

// readKey reads the key that nonces are made of, and makes it when there is none. Every nonce follows from it and from
// the UID of the Reservation, so that it survives this process and nobody else knows it before it is revealed (R21).
func (l *lottery) readKey(ctx context.Context) error {
	secrets := l.kube.CoreV1().Secrets(Namespace)
	secret, err := secrets.Get(ctx, lotteryKey, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		key := make([]byte, keyBytes)
		if _, err := rand.Read(key); err != nil {
			return fmt.Errorf("making the lottery's key: %w", err)
		}
		secret, err = secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: lotteryKey}, Data: map[string][]byte{keyField: key},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("reading Secret %s/%s: %w", Namespace, lotteryKey, err)
	}
	key := secret.Data[keyField]
	if len(key) != keyBytes {
		return fmt.Errorf("Secret %s/%s: %q holds %d bytes; it must hold %d: delete the Secret, and the scheduler creates "+
			"it again",
			Namespace, lotteryKey, keyField, len(key), keyBytes)
	}
	l.book.SetLotteryKey(key)
	return nil
}

// awaitKey tries to read the key until it has it. Until then Runs start where there is room, and are promised dates.
func (l *lottery) awaitKey(ctx context.Context) {
	for pause(ctx, l.clock, 5*time.Second) {
		if l.readKey(ctx) == nil {
			return
		}
	}
}
