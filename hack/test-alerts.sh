#!/usr/bin/env bash
# Checks the alerts for Prometheus, and has each of them fire and be quiet.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v promtool >/dev/null || { echo 'promtool is not installed: apt-get install prometheus' >&2; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"${GO:-go}" run ./hack/monitoring -rules >"$dir/rules.yaml"
"${GO:-go}" run ./hack/monitoring -tests rules.yaml >"$dir/tests.yaml"
promtool check rules "$dir/rules.yaml"
promtool test rules "$dir/tests.yaml"
