#!/usr/bin/env bash
# Fails if a generated file is not what generate.sh writes, and says which.
set -euo pipefail
cd "$(dirname "$0")/.."
before=$(mktemp -d)
trap 'rm -rf "$before"' EXIT
generated=(pkg/apis manifests/crd manifests/monitoring docs/cli docs/api.md)
cp -r --parents "${generated[@]}" "$before"
hack/generate.sh
for part in "${generated[@]}"; do
  diff -ru "$before/$part" "$part" || { echo "$part is out of date; run \`make generate\` and commit the result" >&2; exit 1; }
done
