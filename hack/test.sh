#!/usr/bin/env bash
# Runs all tests. A pure package, one that has no Kubernetes client below it, runs under the race detector; the others
# would have to be built for it together with the API server's libraries, which takes longer than it is worth. Packages
# that start control planes run one after the other; most of their tests wait for something most of the time, so that four of them
# run at once whatever the number of processors. Fuzz targets run for seconds beyond their seeds. Arguments go to every go test.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}

list() { "$go" list -f '{{.ImportPath}} {{join .Deps " "}}' "$@"; }
pure=$(list ./pkg/... | awk '!/ k8s\.io\/client-go/ {print $1}')
impure=$(list ./cmd/... ./pkg/... | awk '/ k8s\.io\/client-go/ {print $1}')

"$go" test -race -shuffle=on -timeout=10m "$@" $pure
# A thousand histories of each kind, which would take the race detector too long.
"$go" test -timeout=10m "$@" ./pkg/book -run '^(TestStorms|TestRandomHistories|TestRandomBreaths)$' -rapid.checks=1000
"$go" test -shuffle=on -timeout=10m "$@" $impure
GO=$go hack/fuzz.sh
"$go" test -shuffle=on -timeout=40m -p=1 -parallel=4 "$@" ./test/...
