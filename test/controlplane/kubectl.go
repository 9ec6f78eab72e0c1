package controlplane

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
)

// Kubectl runs bin/kubectl with the administrator's kubeconfig. The binaries' directory comes first in PATH, so that
// plugins such as `kubectl runs` are found. The error is that of the process; what it says is in stderr.
func (c *ControlPlane) Kubectl(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	return c.KubectlStdin(ctx, nil, args...)
}

// KubectlStdin is Kubectl with standard input, as for `apply -f -`.
func (c *ControlPlane) KubectlStdin(ctx context.Context, stdin io.Reader, args ...string) (stdout, stderr string,
	err error) {
	path, err := binary(c.options.BinDir, "kubectl")
	if err != nil {
		return "", "", err
	}
	var out, problems bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(),
		"KUBECONFIG="+c.Kubeconfig,
		"PATH="+c.options.BinDir+string(os.PathListSeparator)+os.Getenv("PATH"),
	)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &problems
	err = cmd.Run()
	return out.String(), problems.String(), err
}
