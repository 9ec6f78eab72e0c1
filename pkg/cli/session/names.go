package session

import (
	"context"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/group"
)

// NameOf is what people call a Run: KIND/NAME of the group whose pods it stands for, else its own name.
func NameOf(run *rqv1.Run) string {
	if key, ok := group.KeyOf(run); ok {
		return Printable(key.String())
	}
	return run.Name
}

// Printable is a text with a question mark for each character that is not printed. Other people write names of groups
// on their pods, and what nodes say of themselves: none of it is to rule a terminal or to begin a line of its own.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}

// OnRuns adapts the body of a command whose arguments are Runs. People may name them as KIND/NAME too, or as
// NAMESPACE/NAME, as they are printed for all namespaces; the body is given their own names.
func (s *Session) OnRuns(body func(ctx context.Context, names []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, words []string) error {
		return s.RunE(func(ctx context.Context, words []string) error {
			names, err := s.ownNames(ctx, cmd, words)
			if err != nil {
				return err
			}
			return body(ctx, names)
		})(cmd, words)
	}
}

// ownNames returns the Runs' own names for what people call them.
func (s *Session) ownNames(ctx context.Context, cmd *cobra.Command, words []string) ([]string, error) {
	slashed := slices.IndexFunc(words, func(word string) bool { return strings.Contains(word, "/") })
	if slashed < 0 {
		return words, nil
	}
	if all := cmd.Flags().Lookup("all-namespaces"); all != nil && all.Changed {
		return nil, Fail(ExitUsage, "%s is a name within one namespace: leave out -A", words[slashed])
	}
	c, current, _, err := s.Connect()
	if err != nil {
		return nil, err
	}
	names, in := make([]string, len(words)), ""
	for i, word := range words {
		var namespace string
		if namespace, names[i], err = ownName(ctx, c, current, word); err != nil {
			return nil, err
		}
		if i > 0 && namespace != in {
			return nil, Fail(ExitUsage, "%s and %s are in two namespaces: name Runs of one", words[i-1], word)
		}
		in = namespace
	}
	if flag := cmd.Flags().Lookup("namespace"); in != current && flag != nil && flag.Changed {
		return nil, Elsewhere(words[0], in, current)
	} else if in != current {
		s.namespace = in
	}
	s.called = map[string]string{}
	for i, word := range words {
		s.called[names[i]] = strings.TrimPrefix(word, in+"/") // no word begins with a slash
	}
	return names, nil
}

// Elsewhere is the error of a word that names something in a namespace while -n says another.
func Elsewhere(word, in, current string) error {
	return Fail(ExitUsage, "%s is in namespace %q, and -n says %q: leave one of them out", word, in, current)
}

// ownName returns the namespace and the own name of the Run that a word names, seen from a namespace. A Run that is
// gone has one as well.
func ownName(ctx context.Context, c client.Client, current, word string) (namespace, name string, err error) {
	first, rest, slashed := strings.Cut(word, "/")
	switch {
	case !slashed:
		return current, word, nil
	case first == "" || rest == "" || strings.HasSuffix(rest, "/"):
		return "", "", Fail(ExitUsage, "%q does not name a Run: give its name, NAMESPACE/NAME, or KIND/NAME of its pods' "+
			"group or of the object that owns them", word)
	}
	if kind, of, both := strings.Cut(rest, "/"); both {
		name, err = byKind(ctx, c, first, kind, of)
		namespace = first
	} else {
		name, err = byKind(ctx, c, current, first, rest)
		namespace = current
		if err == nil && name == "" && len(validation.IsDNS1123Label(first)) == 0 {
			return first, rest, nil
		}
	}
	if err == nil && name == "" {
		err = Fail(ExitError, "%q does not name a Run of namespace %q: \"kubectl runs list -n %s\" shows the names of "+
			"those that you may read", word, namespace, namespace)
	}
	return namespace, name, err
}

// byKind returns the own name of the Run that KIND/NAME names in a namespace; it is empty if that is no kind of which
// Runs are.
func byKind(ctx context.Context, c client.Client, namespace, kind, name string) (string, error) {
	if own, _, _ := strings.Cut(strings.ToLower(kind), "."); own == "run" || own == "runs" {
		return name, nil
	}
	keys := group.Named(namespace, kind, name)
	var there []string
	for _, key := range keys {
		var run rqv1.Run
		err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: group.RunName(key)}, &run)
		switch {
		case err == nil:
			there = append(there, run.Name)
		case apierrors.IsForbidden(err):
			return group.RunName(key), nil // who wants to read it is told
		case !apierrors.IsNotFound(err):
			return "", err
		}
	}
	if len(there) == 0 {
		own, err := ofPod(ctx, c, namespace, keys)
		if err != nil || own != "" {
			return own, err
		}
		if there, err = madeFor(ctx, c, namespace, kind, name); err != nil {
			return "", err
		}
	}
	switch {
	case len(there) == 1:
		return there[0], nil
	case len(there) > 1:
		return "", Fail(ExitError, "%s/%s is several Runs: name one of them, %s", kind, name, strings.Join(there, ", "))
	case len(keys) > 0:
		return group.RunName(keys[0]), nil
	}
	return "", nil
}

// ofPod returns the own name of the Run in which a pod that somebody names has a rank: that of one that is gone, whose
// place it has taken, may be called by another name. It is empty where there is none.
func ofPod(ctx context.Context, c client.Client, namespace string, keys []group.Key) (string, error) {
	i := slices.IndexFunc(keys, group.Key.Alone)
	if i < 0 {
		return "", nil
	}
	var pod corev1.Pod
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: keys[i].Name}, &pod)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", err
	}
	return pod.Labels[rqv1.LabelRun], nil
}

// madeFor returns the own names of the Runs whose groups were made for what KIND/NAME names, in order.
func madeFor(ctx context.Context, c client.Client, namespace, kind, name string) (there []string, err error) {
	var runs rqv1.RunList
	switch err := c.List(ctx, &runs, client.InNamespace(namespace)); {
	case apierrors.IsForbidden(err):
		return nil, nil // none that this person may see
	case err != nil:
		return nil, err
	}
	for i := range runs.Items {
		if slices.ContainsFunc(group.WasMadeFor(&runs.Items[i]), func(k group.Key) bool { return k.Means(kind, name) }) {
			there = append(there, runs.Items[i].Name)
		}
	}
	slices.Sort(there)
	return there, nil
}

// Called is what somebody has called a Run on the command line, given its own name.
func (s *Session) Called(name string) string {
	if word, ok := s.called[name]; ok {
		return word
	}
	return name
}

// NotFoundInWords says which Run does not exist, and how to find those that do. What has been taken for NAMESPACE/NAME
// may be meant as KIND/NAME.
func (s *Session) NotFoundInWords(err error, namespace, name string) error {
	noKind := ""
	if s.namespace == namespace && s.Called(name) == name {
		noKind = fmt.Sprintf("%q is no kind of which Runs are", namespace)
	}
	switch {
	case apierrors.IsNotFound(err) && !IsMissingKind(err):
		if noKind != "" {
			noKind = ", and " + noKind
		}
		return Fail(ExitError,
			"Run %q not found in namespace %q%s; \"kubectl runs list -A\" lists those that you may read",
			s.Called(name), namespace, noKind)
	case apierrors.IsForbidden(err) && noKind != "":
		return Fail(ExitError, "%s; ask an administrator for the right; %s", Refusal(err), noKind)
	}
	return err
}

// Names is what people call Runs that stand for others' pods, by the Runs' own names, which no two namespaces share.
type Names map[string]string

// Add takes note of a Run.
func (n Names) Add(run *rqv1.Run) {
	if _, ok := group.KeyOf(run); ok {
		n[run.Name] = NameOf(run)
	}
}

// NamesOf returns what people call some Runs.
func NamesOf(runs []rqv1.Run) Names {
	names := Names{}
	for i := range runs {
		names.Add(&runs[i])
	}
	return names
}

// word is what may be the own name of a Run, and ownForm what that of one that stands for others' pods ends in.
var (
	word    = regexp.MustCompile(`[a-z0-9]([-a-z0-9.]*[a-z0-9])?`)
	ownForm = regexp.MustCompile(`-[0-9a-f]{8}$`)
)

// In returns a text with the Runs called as people call them.
func (n Names) In(text string) string {
	if len(n) == 0 {
		return text
	}
	return word.ReplaceAllStringFunc(text, func(own string) string {
		if called, ok := n[own]; ok {
			return called
		}
		return own
	})
}

// Into has all texts in what a pointer points to call the Runs as people call them. It is for what people are shown,
// never for programs.
func (n Names) Into(shown any) {
	if len(n) > 0 {
		eachText(reflect.ValueOf(shown), n.In)
	}
}

// Show has what a pointer points to call Runs as people call them. It reads the Runs if any may have another name than
// its own; those that cannot be read keep that.
func Show(ctx context.Context, c client.Client, namespace string, shown any) {
	found := false
	eachText(reflect.ValueOf(shown), func(text string) string {
		found = found || slices.ContainsFunc(word.FindAllString(text, -1), ownForm.MatchString)
		return text
	})
	if !found {
		return
	}
	var runs rqv1.RunList
	if err := c.List(ctx, &runs); err != nil {
		if err := c.List(ctx, &runs, client.InNamespace(namespace)); err != nil {
			return
		}
	}
	NamesOf(runs.Items).Into(shown)
}

// eachText replaces every text that can be reached and set by what a function makes of it.
func eachText(v reflect.Value, by func(string) string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			eachText(v.Elem(), by)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				eachText(v.Field(i), by)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			eachText(v.Index(i), by)
		}
	case reflect.String:
		if was := v.String(); v.CanSet() {
			if is := by(was); is != was {
				v.SetString(is)
			}
		}
	}
}
