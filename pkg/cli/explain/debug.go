package explain

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/world"
	"github.com/davidlangworthy/jobtree/pkg/dump"
)

// How long the scheduler has to answer, how often it is looked for, and from which age on nobody waits for an answer
// any more, whatever the clock here.
const (
	answerWithin = 30 * time.Second
	answerPolled = 200 * time.Millisecond
	forsaken     = 2 * answerWithin
)

// debug prints all that the scheduler knows of a Run. It is asked by a ConfigMap, which is deleted when it has
// answered, since a Run's template may hold what not everybody is to read.
func debug(ctx context.Context, s *session.Session, c client.Client, run types.NamespacedName) error {
	asked := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: world.SchedulerNamespace, Name: dump.ConfigMap}}
	dump.Ask(asked, run)
	if err := ask(ctx, c, asked, s.Now()); err != nil {
		return err
	}
	defer func() {
		err := c.Delete(context.WithoutCancel(ctx), asked, client.Preconditions{UID: &asked.UID})
		if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			fmt.Fprintf(s.ErrOut, "ConfigMap %s/%s with the answer is still there, delete it: %s\n", asked.Namespace,
				asked.Name, session.Refusal(err))
		}
	}()
	text, err := answerTo(ctx, c, asked)
	if err != nil {
		return err
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, text, "", "    "); err != nil {
		return err
	}
	_, err = s.Out.Write(pretty.Bytes())
	return err
}

// ask creates the ConfigMap that asks. One that is there already, with or without its answer, goes if nobody waits for
// it any more.
func ask(ctx context.Context, c client.Client, asked *corev1.ConfigMap, now time.Time) error {
	err := c.Create(ctx, asked)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	other := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(asked), other); err != nil {
		return err
	}
	if now.Sub(other.CreationTimestamp.Time) < forsaken {
		return session.Fail(session.ExitError, "somebody else is asking, by ConfigMap %s/%s; try again in a minute",
			asked.Namespace, asked.Name)
	}
	if err := c.Delete(ctx, other, client.Preconditions{UID: &other.UID}); err != nil {
		return err
	}
	return c.Create(ctx, asked)
}

// answerTo waits for the answer to a question. That to another one of the same name is somebody else's.
func answerTo(ctx context.Context, c client.Client, asked *corev1.ConfigMap) (text []byte, err error) {
	err = wait.PollUntilContextTimeout(ctx, answerPolled, answerWithin, false, func(ctx context.Context) (bool, error) {
		answered := &corev1.ConfigMap{}
		err := c.Get(ctx, client.ObjectKeyFromObject(asked), answered)
		switch {
		case apierrors.IsNotFound(err), err == nil && answered.UID != asked.UID:
			return false, session.Fail(session.ExitError, "somebody has deleted the question, ConfigMap %s/%s; try again",
				asked.Namespace, asked.Name)
		case err == nil:
			text, err = dump.Read(answered)
		}
		return text != nil, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return nil, session.Fail(session.ExitError,
			"the scheduler has not answered within %s; is jobtree-scheduler running?", answerWithin)
	}
	return text, err
}
