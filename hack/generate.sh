#!/usr/bin/env bash
# Writes the generated files: deepcopy functions, CRDs, the references of the API and the CLI, alerts and
# dashboards. The first two are described by go:generate.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
"$go" generate ./pkg/apis/...
"$go" run ./cmd/kubectl-runs/gendocs docs/cli
"$go" run ./hack/monitoring manifests/monitoring
"$go" run ./hack/apidocs docs/api.md manifests/crd/rq.*.yaml
