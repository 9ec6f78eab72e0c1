package controlplane

import (
	"os"
	"path/filepath"
)

// auditPolicy has the API server log what the scheduler writes, and which pods others delete.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: ["system:serviceaccount:` + Namespace + ":" + SchedulerAccount + `"]
  verbs: [create, update, patch, delete, deletecollection]
- level: Metadata
  verbs: [delete, deletecollection]
  resources: [{resources: [pods, pods/eviction]}]
- level: None
`

// AuditLog is the file with an audit event a line, of each write of the scheduler; there is none without Options.Audit.
func (c *ControlPlane) AuditLog() string { return filepath.Join(c.options.Dir, "audit.log") }

// auditFlags are the API server's flags for the audit log that Options ask for.
func (c *ControlPlane) auditFlags() ([]string, error) {
	if !c.options.Audit {
		return nil, nil
	}
	policy := filepath.Join(c.options.Dir, "audit.yaml")
	err := os.WriteFile(policy, []byte(auditPolicy), 0o600)
	return []string{"--audit-policy-file=" + policy, "--audit-log-path=" + c.AuditLog()}, err
}
