#!/usr/bin/env bash
# Writes the generated files.
set -euo pipefail
cd "$(dirname "$0")/.."
bin/controller-gen object paths=./pkg/apis/...
bin/controller-gen crd paths=./pkg/apis/... output:crd:dir=manifests/crd
