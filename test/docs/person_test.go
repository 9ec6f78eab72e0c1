package docs

import (
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfig writes a person's kubeconfig, made of an administrator's, and returns its name.
func (p *person) kubeconfig(t *testing.T, admins string) string {
	t.Helper()
	file, err := clientcmd.LoadFromFile(admins)
	if err != nil {
		t.Fatal(err)
	}
	current := file.Contexts[file.CurrentContext]
	user := file.AuthInfos[current.AuthInfo].DeepCopy()
	user.Impersonate, user.ImpersonateGroups = p.name, p.groups
	file.AuthInfos = map[string]*api.AuthInfo{p.name: user}
	file.Contexts = map[string]*api.Context{}
	for _, group := range p.groups {
		file.Contexts[group] = &api.Context{Cluster: current.Cluster, AuthInfo: p.name, Namespace: group}
	}
	file.CurrentContext = p.groups[0]
	name := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, name); err != nil {
		t.Fatal(err)
	}
	return name
}
