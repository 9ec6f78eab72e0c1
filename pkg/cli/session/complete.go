package session

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// completionTimeout bounds the wait for an API server that does not answer while somebody types.
const completionTimeout = 3 * time.Second

// AddCompletion completes the flags that all commands share.
func (s *Session) AddCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	Must(root.RegisterFlagCompletionFunc("namespace", func(cmd *cobra.Command, _ []string, _ string) ([]string,
		cobra.ShellCompDirective) {
		return s.namesOf(cmd, "NamespaceList", corev1.SchemeGroupVersion.String(), false), cobra.ShellCompDirectiveNoFileComp
	}))
	Must(root.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]string,
		cobra.ShellCompDirective) {
		config, err := s.Flags.ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for name := range config.Contexts {
			names = append(names, name)
		}
		slices.Sort(names)
		return names, cobra.ShellCompDirectiveNoFileComp
	}))
}

// CompleteRuns completes one name of a Run.
func (s *Session) CompleteRuns(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return s.CompleteMoreRuns(cmd, args, typed)
}

// CompleteMoreRuns completes names of Runs that are not on the command line yet.
func (s *Session) CompleteMoreRuns(cmd *cobra.Command, args []string, typed string) ([]string,
	cobra.ShellCompDirective) {
	c, namespace, _, err := s.Connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	var runs rqv1.RunList
	if err := c.List(ctx, &runs, client.InNamespace(namespace)); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for i := range runs.Items {
		run := &runs.Items[i]
		if !slices.ContainsFunc(args, func(word string) bool {
			return word == run.Name || strings.EqualFold(word, NameOf(run))
		}) {
			names = append(names, offered(run, typed))
		}
	}
	slices.Sort(names)
	return names, cobra.ShellCompDirectiveNoFileComp
}

// offered is the name under which a Run completes what is typed: what people call it, unless its own name is being
// typed. The kind keeps the case in which it is typed, since shells complete nothing else.
func offered(run *rqv1.Run, typed string) string {
	name := NameOf(run)
	folds := max(0, min(len(typed), strings.IndexByte(name, '/')))
	switch {
	case len(typed) <= len(name) && strings.EqualFold(typed[:folds], name[:folds]) &&
		typed[folds:] == name[folds:len(typed)]:
		return typed + name[len(typed):]
	case strings.HasPrefix(run.Name, typed):
		return run.Name
	}
	return name
}

// CompleteReservations completes the name of a Reservation, or of a file where there is none.
func (s *Session) CompleteReservations(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return s.namesOf(cmd, "ReservationList", rqv1.GroupVersion.String(), true), cobra.ShellCompDirectiveDefault
}

// CompleteOwners completes an owner that has a Budget.
func (s *Session) CompleteOwners(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	c, _, _, err := s.Connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	budgets, err := ReadBudgets(ctx, c)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	owners := make([]string, len(budgets))
	for i := range budgets {
		owners[i] = string(budgets[i].Spec.Owner)
	}
	slices.Sort(owners)
	return slices.Compact(owners), cobra.ShellCompDirectiveNoFileComp
}

// namesOf lists names; completion has nowhere to show an error, so there are none to choose from then.
func (s *Session) namesOf(cmd *cobra.Command, kind, apiVersion string, namespaced bool) []string {
	c, namespace, _, err := s.Connect()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{Kind: kind, APIVersion: apiVersion}}
	var options []client.ListOption
	if namespaced {
		options = append(options, client.InNamespace(namespace))
	}
	if err := c.List(ctx, &list, options...); err != nil {
		return nil
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	return names
}
