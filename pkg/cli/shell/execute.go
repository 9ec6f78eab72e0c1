package shell

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// execute runs the command in a container, and has the command's exit code be that of this program.
func (v *visit) execute(ctx context.Context, pod *corev1.Pod, container string, index int) error {
	config, err := v.RESTConfig()
	if err != nil {
		return err
	}
	request, err := session.PodStream(config, http.MethodPost, pod, "exec", &corev1.PodExecOptions{Container: container,
		Command: v.command, Stdin: v.stdin || v.tty, Stdout: true, Stderr: !v.tty, TTY: v.tty})
	if err != nil {
		return err
	}
	executor, err := executorOf(config, request.URL())
	if err != nil {
		return err
	}
	streams := remotecommand.StreamOptions{Stdout: v.Out, Stderr: v.ErrOut, Tty: v.tty}
	if v.stdin || v.tty {
		streams.Stdin = v.In
	}
	if v.tty {
		restore, err := v.takeTerminal(ctx, &streams)
		if err != nil {
			return err
		}
		defer restore()
	}
	err = executor.StreamWithContext(ctx, streams)
	var ended exec.ExitError
	switch {
	case errors.As(err, &ended):
		return &session.Failure{Code: ended.ExitStatus()}
	case err != nil && session.NodeUnreached(err):
		return session.Fail(session.ExitError, "the API server cannot reach the kubelet of node %s, where rank %d runs: %s",
			pod.Spec.NodeName, index, session.Refusal(err))
	}
	return err
}

// executorOf talks to the API server by WebSockets, or by SPDY to one that does not know them, or where a proxy does
// not let them through.
func executorOf(config *rest.Config, address *url.URL) (remotecommand.Executor, error) {
	spdy, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, address)
	if err != nil {
		return nil, err
	}
	sockets, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, address.String())
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(sockets, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}
