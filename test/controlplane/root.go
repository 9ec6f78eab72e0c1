package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
)

// Root is the top directory of the checkout that the working directory is in.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "manifests", "crd")); err == nil {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return "", fmt.Errorf("%s is not inside a jobtree checkout", dir)
		}
	}
}

// BinDir is the directory that JOBTREE_BIN names, for schedulers that are built in another way than usual, otherwise
// bin of a checkout.
func BinDir(root string) string {
	if dir := os.Getenv("JOBTREE_BIN"); dir != "" {
		return dir
	}
	return filepath.Join(root, "bin")
}

// makeTargets names the make target that builds a binary.
var makeTargets = map[string]string{
	"etcd":                    "tools",
	"kube-apiserver":          "tools",
	"kube-controller-manager": "tools",
	"kubectl":                 "tools",
	"kwok":                    "tools",
	"jobset-controller":       "tools",
	"jobtree-scheduler":       "build",
}

// binary is the path of a binary in dir. A missing one is an error that says how to build it.
func binary(dir, name string) (string, error) {
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is missing; run `make %s` to build it", path, makeTargets[name])
	}
	return path, nil
}
