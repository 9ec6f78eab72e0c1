#!/usr/bin/env bash
# Runs all tests. The pure packages, those that have no Kubernetes client below them, start nothing that runs at once: the race
# detector looks at the one test that has many ask the book at the same time, and at nothing that could not race. Packages
# that start control planes run one after the other; most of their tests wait for something most of the time, so that four of them
# run at once whatever the number of processors. Fuzz targets run for seconds beyond their seeds. Arguments go to every go test.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}

list() { "$go" list -f '{{.ImportPath}} {{join .Deps " "}}' "$@"; }
pure=$(list ./pkg/... | awk '!/ k8s\.io\/client-go/ {print $1}')
impure=$(list ./cmd/... ./pkg/... | awk '/ k8s\.io\/client-go/ {print $1}')

"$go" test -shuffle=on -timeout=10m "$@" $pure
"$go" test -race "$@" ./pkg/book -run '^TestManyAskAtOnce$'
# A thousand histories of each kind.
"$go" test -timeout=10m "$@" ./pkg/book -run '^(TestStorms|TestRandomHistories|TestRandomBreaths)$' -rapid.checks=1000
"$go" test -shuffle=on -timeout=10m "$@" $impure
GO=$go hack/fuzz.sh
"$go" test -shuffle=on -timeout=40m -p=1 -parallel=4 "$@" ./test/...
