package explain

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
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

// How long the scheduler has to answer, and how often it is looked for.
const (
	answerWithin = 30 * time.Second
	answerPolled = 200 * time.Millisecond
)

// debug prints all that the scheduler knows of a Run. It is asked by a ConfigMap, which is deleted when it has
// answered, since a Run's template may hold what not everybody is to read.
func debug(ctx context.Context, c client.Client, run types.NamespacedName, out io.Writer) error {
	asked := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: world.SchedulerNamespace, Name: dump.ConfigMap}}
	dump.Ask(asked, run)
	err := c.Create(ctx, asked)
	if apierrors.IsAlreadyExists(err) {
		return session.Fail(session.ExitError, "somebody else is asking: ConfigMap %s/%s exists; try again, or delete it",
			asked.Namespace, asked.Name)
	}
	if err != nil {
		return err
	}
	defer func() {
		_ = c.Delete(context.WithoutCancel(ctx), asked, client.Preconditions{UID: &asked.UID}) // whoever is next says if not
	}()
	var text []byte
	err = wait.PollUntilContextTimeout(ctx, answerPolled, answerWithin, false, func(ctx context.Context) (bool, error) {
		answered := &corev1.ConfigMap{}
		err := c.Get(ctx, client.ObjectKeyFromObject(asked), answered)
		if err == nil {
			text, err = dump.Read(answered)
		}
		return text != nil, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return session.Fail(session.ExitError, "the scheduler has not answered within %s; is jobtree-scheduler running?",
			answerWithin)
	}
	if err != nil {
		return err
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, text, "", "    "); err != nil {
		return err
	}
	_, err = out.Write(pretty.Bytes())
	return err
}
