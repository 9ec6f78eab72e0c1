package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// Exit codes of "kubectl runs".
const (
	ExitOK          = 0
	ExitError       = 1
	ExitUsage       = 2
	ExitNotReached  = 3
	ExitTimeout     = 4
	ExitInvalid     = 5
	ExitUnrevealed  = 6
	ExitUnread      = 7
	exitInterrupted = 130
)

// ExitCodesHelp lists the exit codes for people.
const ExitCodesHelp = `Exit codes:

  0    done
  1    something was refused or could not be read or written; audit: an invariant is violated
  2    the command line is wrong
  3    watch: a Run ended in a phase other than the one awaited
  4    watch: the time given by --timeout has passed
  5    explain --verify: the record is not valid
  6    explain --verify: there is no draw to check, or not yet
  7    audit: objects could not be read, so the answer is unknown
  130  interrupted`

// Failure is an error in words for people, with the exit code that it leads to.
type Failure struct {
	Code    int
	Message string
}

// Error returns the message.
func (f *Failure) Error() string { return f.Message }

// Fail is an error in words for people, with an exit code.
func Fail(code int, format string, args ...any) error {
	return &Failure{Code: code, Message: fmt.Sprintf(format, args...)}
}

// InWords says what went wrong, why, and what to do next. Of errors that are joined each is told, and the first has the
// exit code.
func (s *Session) InWords(err error) error {
	var failed *Failure
	var unreachable *url.Error
	switch joined, several := err.(interface{ Unwrap() []error }); {
	case errors.Is(err, context.Canceled):
		return &Failure{Code: exitInterrupted}
	case several:
		return s.allInWords(joined.Unwrap())
	case errors.As(err, &failed):
		return failed
	case errors.As(err, &unreachable) && s.unconfigured():
		return Fail(ExitError, "no cluster is configured: %s", s.configure())
	case errors.As(err, &unreachable):
		return Fail(ExitError,
			"cannot reach the API server: %v; is it running, and do --kubeconfig and --context name the right one?", err)
	case IsMissingKind(err):
		return Fail(ExitError,
			"the API server does not know jobtree's kinds: install them with \"kubectl apply -k manifests\"")
	case apierrors.IsUnauthorized(err):
		return Fail(ExitError, "the API server does not accept these credentials; check --kubeconfig, --context and --token")
	case apierrors.IsForbidden(err):
		remedy := "ask an administrator for the right, or choose another namespace with -n"
		if strings.HasSuffix(Refusal(err), atClusterScope) {
			remedy = "ask an administrator for the right"
		}
		return Fail(ExitError, "%s; %s", Refusal(err), remedy)
	}
	return Fail(ExitError, "%s", Refusal(err))
}

// allInWords puts several errors into words, a line each at least.
func (s *Session) allInWords(errs []error) error {
	var all *Failure
	for _, err := range errs {
		failed := s.InWords(err).(*Failure)
		if all == nil {
			all = failed
			continue
		}
		all = &Failure{Code: all.Code, Message: all.Message + "\nError: " + failed.Message}
	}
	return all
}

// atClusterScope ends what RBAC says of a request that is about no namespace, or all of them.
const atClusterScope = "at the cluster scope"

// unconfigured is true when neither a kubeconfig nor a flag names a cluster, so that the client has guessed one.
func (s *Session) unconfigured() bool {
	config, err := s.Flags.ToRawKubeConfigLoader().RawConfig()
	return err == nil && len(config.Clusters) == 0 && *s.Flags.APIServer == ""
}

// configure says how to name a cluster: the file that is named is not there, or none is.
func (s *Session) configure() string {
	files, by := filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar)), "KUBECONFIG"
	if explicit := *s.Flags.KubeConfig; explicit != "" {
		files, by = []string{explicit}, "--kubeconfig"
	}
	for _, file := range files {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			return fmt.Sprintf("%s names %s, which does not exist", by, file)
		}
	}
	return "pass --kubeconfig or set KUBECONFIG"
}

// IsMissingKind tells a resource that the server does not serve from an object that does not exist.
func IsMissingKind(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// unchecked is what the API server adds to what is wrong with an object's form.
const unchecked = "some validation rules were not checked because the object was invalid"

// Refusal is the server's own message; several causes are listed one a line.
func Refusal(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err.Error()
	}
	details := status.Status().Details
	if status.Status().Reason != metav1.StatusReasonInvalid || details == nil || len(details.Causes) == 0 {
		return status.Status().Message
	}
	var lines []string
	for _, cause := range details.Causes {
		switch {
		case len(details.Causes) > 1 && strings.Contains(cause.Message, unchecked): // it says nothing beside another
		case cause.Field != "" && cause.Field != "<nil>":
			lines = append(lines, cause.Field+": "+cause.Message)
		default:
			lines = append(lines, cause.Message)
		}
	}
	if len(lines) == 1 {
		return lines[0]
	}
	return "\n  " + strings.Join(lines, "\n  ")
}
