// Package cuts is "kubectl runs cuts".
package cuts

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/brake"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/world"
)

// cuts is one "kubectl runs cuts …".
type cuts struct {
	*session.Session
	output  *session.Output
	because string
}

// Command returns "kubectl runs cuts".
func Command(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cuts",
		Short: "Pause and resume cuts, and call an activation off",
		Long: `Pause and resume cuts, and call an activation off.

A cut ends or shrinks a Run to make room for another Run whose date has come. While cuts are paused, dates do not cause
cuts: a Run whose date has come waits, and starts when there is room. Cuts that were already decided go on unless they
are called off. Lost nodes are replaced as usual.

The ConfigMap jobtree-cuts in jobtree-system records this. Whoever may patch it may pause and call off cuts.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return session.Fail(session.ExitUsage, "%q is not a command of %q; choose from status, pause, resume, call-off",
					args[0], cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(cutsStatusCommand(s), cutsPauseCommand(s), cutsResumeCommand(s), cutsCallOffCommand(s))
	return cmd
}

func cutsPauseCommand(s *session.Session) *cobra.Command {
	c := &cuts{Session: s}
	cmd := &cobra.Command{
		Use:   "pause",
		Short: "Stop all cuts until they are resumed",
		Long: "Stop all cuts until they are resumed. Cuts that were already decided go on: see " +
			`"kubectl runs cuts call-off".`,
		Example: "  kubectl runs cuts pause --because 'the fabric is being tested'",
		Args:    cobra.NoArgs,
		RunE:    s.RunE(c.pause),
	}
	cmd.Flags().StringVar(&c.because, "because", "", "The reason, shown to those who wait.")
	return cmd
}

func cutsResumeCommand(s *session.Session) *cobra.Command {
	c := &cuts{Session: s}
	return &cobra.Command{
		Use:   "resume",
		Short: "Resume cuts",
		Long:  "Resume cuts. Runs whose dates have passed meanwhile get their turn at once, the oldest first.",
		Args:  cobra.NoArgs,
		RunE:  s.RunE(c.resume),
	}
}

func cutsCallOffCommand(s *session.Session) *cobra.Command {
	c := &cuts{Session: s}
	cmd := &cobra.Command{
		Use:   "call-off RESERVATION | NAMESPACE/RESERVATION",
		Short: "Call off the cuts that a Reservation makes or is going to make",
		Long: `Call off the cuts that a Reservation makes or is going to make. The Reservation is Canceled: Runs that have not
been told to end stay, and the waiting Run gets no new date for reservationLead. It starts earlier if there is room.`,
		Example: "  kubectl runs cuts call-off -n team big-r0 --because 'their paper is due'",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return session.Fail(session.ExitUsage, "name a Reservation: %s", cmd.UseLine())
			}
			return nil
		},
		RunE: s.RunE(c.callOff),
	}
	cmd.Flags().StringVar(&c.because, "because", "", "The reason, for the record.")
	return cmd
}

func (c *cuts) word(ctx context.Context, api client.Client) brake.Word {
	return brake.Word{By: session.Whoami(ctx, api), At: c.Now().UTC().Truncate(time.Second), Because: c.because}
}

func (c *cuts) pause(ctx context.Context, _ []string) error {
	api, _, _, err := c.Connect()
	if err != nil {
		return err
	}
	if err := c.say(ctx, api, brake.Pause(c.word(ctx, api))); err != nil {
		return err
	}
	fmt.Fprintln(c.Out, "cuts are paused")
	fmt.Fprintln(c.ErrOut, "Resume them with: kubectl runs cuts resume")
	return nil
}

func (c *cuts) resume(ctx context.Context, _ []string) error {
	api, _, _, err := c.Connect()
	if err != nil {
		return err
	}
	if err := c.say(ctx, api, brake.Resume()); err != nil {
		return err
	}
	fmt.Fprintln(c.Out, "cuts are resumed")
	return nil
}

func (c *cuts) callOff(ctx context.Context, args []string) error {
	api, namespace, given, err := c.Connect()
	if err != nil {
		return err
	}
	name := types.NamespacedName{Namespace: namespace, Name: args[0]}
	if ns, rest, ok := strings.Cut(args[0], "/"); ok {
		if given && ns != namespace {
			return session.Elsewhere(args[0], ns, namespace)
		}
		name = types.NamespacedName{Namespace: ns, Name: rest}
	}
	var r rqv1.Reservation
	if err := api.Get(ctx, name, &r); apierrors.IsNotFound(err) {
		return session.Fail(session.ExitError, "there is no Reservation %s: list them with kubectl get reservations -A", name)
	} else if err != nil {
		return err
	}
	if r.Ended() {
		return session.Fail(session.ExitError, "Reservation %s is %s: there is nothing left to call off", name,
			r.Status.State)
	}
	change, err := brake.Off(name, brake.CallOff{UID: r.UID, Word: c.word(ctx, api)})
	if err != nil {
		return err
	}
	if err := c.tidy(ctx, api, change); err != nil {
		return err
	}
	if err := c.say(ctx, api, change); err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "Reservation %s is called off\n", name)
	return nil
}

// tidy has what was called off and has ended go with the next word, unless that is about one of the same name.
func (c *cuts) tidy(ctx context.Context, api client.Client, change map[string]*string) error {
	state, err := readBrake(ctx, api)
	if err != nil {
		return err
	}
	for name, off := range state.CalledOff {
		if _, anew := change[brake.KeyOf(name)]; anew {
			continue
		}
		var r rqv1.Reservation
		err := api.Get(ctx, name, &r)
		if apierrors.IsNotFound(err) || err == nil && (r.UID != off.UID && off.UID != "" || r.Status.EndedAt != nil) {
			change[brake.KeyOf(name)] = nil
		}
	}
	return nil
}

// say changes the ConfigMap, and makes it when there is none.
func (c *cuts) say(ctx context.Context, api client.Client, change map[string]*string) error {
	said := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: world.SchedulerNamespace, Name: brake.ConfigMap}}
	err := session.Merge(ctx, api, said, map[string]any{"data": change})
	if !apierrors.IsNotFound(err) {
		return err
	}
	said.Data = map[string]string{}
	for key, value := range change {
		if value != nil {
			said.Data[key] = *value
		}
	}
	return api.Create(ctx, said)
}

func readBrake(ctx context.Context, api client.Client) (brake.State, error) {
	var said corev1.ConfigMap
	err := api.Get(ctx, types.NamespacedName{Namespace: world.SchedulerNamespace, Name: brake.ConfigMap}, &said)
	return brake.Parse(said.Data), client.IgnoreNotFound(err)
}

// cutsAnswer is what "kubectl runs cuts status" prints as data.
type cutsAnswer struct {
	Paused       bool           `json:"paused"`
	By           string         `json:"by,omitempty"`
	Since        *metav1.Time   `json:"since,omitempty"`
	Because      string         `json:"because,omitempty"`
	Problem      string         `json:"problem,omitempty"`
	CutsLastHour int            `json:"cutsLastHour"`
	Activating   []string       `json:"activating"`
	CalledOff    []calledOffRow `json:"calledOff"`
}

// calledOffRow is one Reservation that somebody has called off.
type calledOffRow struct {
	Reservation string `json:"reservation"`
	Said        string `json:"said"`
}

func cutsStatusCommand(s *session.Session) *cobra.Command {
	c := &cuts{Session: s}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show whether cuts are paused, and how many there were in the last hour",
		Long: `Show whether cuts are paused, and how many Runs were ended or shrunk for others in the last hour.

With -o json or yaml the same is printed as data: paused, by, since, because, problem, cutsLastHour, activating[] (the
Reservations that are making room), calledOff[] with reservation and said.`,
		Args: cobra.NoArgs,
		RunE: s.RunE(c.status),
	}
	c.output = session.NewAnswerOutput(cmd, "json, yaml, name (of the Reservations that are making room)")
	return cmd
}

func (c *cuts) status(ctx context.Context, _ []string) error {
	if err := c.output.Check(); err != nil {
		return err
	}
	api, _, _, err := c.Connect()
	if err != nil {
		return err
	}
	state, err := readBrake(ctx, api)
	if err != nil {
		return err
	}
	var list rqv1.ReservationList
	if err := api.List(ctx, &list); err != nil {
		return err
	}
	told := cutsOf(&state, list.Items, c.Now())
	if !c.output.ForPeople() {
		var names []*session.Answer
		for _, name := range told.Activating {
			names = append(names, session.About("Reservation", name[strings.Index(name, "/")+1:]))
		}
		return c.output.PrintData(c.Out, told, names...)
	}
	says := state.Says()
	if says == "" {
		says = "cuts are not paused"
	}
	fmt.Fprintln(c.Out, session.LocalTimes(says, c.Now()))
	fmt.Fprintf(c.Out, "Runs cut in the last hour: %d\n", told.CutsLastHour)
	for _, name := range told.Activating {
		fmt.Fprintf(c.Out, "activating: %s\n", name)
	}
	for _, off := range told.CalledOff {
		fmt.Fprintf(c.Out, "%s: %s\n", off.Reservation, off.Said)
	}
	return nil
}

func cutsOf(state *brake.State, reservations []rqv1.Reservation, now time.Time) cutsAnswer {
	a := cutsAnswer{Paused: state.Says() != "", By: state.By, Because: state.Because, Problem: state.Problem,
		Activating: []string{}, CalledOff: []calledOffRow{}}
	if !state.At.IsZero() {
		since := metav1.NewTime(state.At)
		a.Since = &since
	}
	for i := range reservations {
		r := &reservations[i]
		name := r.Namespace + "/" + r.Name
		if at := r.Status.ActivatedAt; at != nil && now.Sub(at.Time) < time.Hour {
			a.CutsLastHour += len(brake.Runs(r.Status.Cuts))
		}
		if r.Status.State == rqv1.ReservationActivating {
			a.Activating = append(a.Activating, name)
		}
		if r.Status.CalledOff != "" {
			a.CalledOff = append(a.CalledOff, calledOffRow{name, r.Status.CalledOff})
		}
	}
	slices.Sort(a.Activating)
	slices.SortFunc(a.CalledOff, func(x, y calledOffRow) int { return strings.Compare(x.Reservation, y.Reservation) })
	return a
}
