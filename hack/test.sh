#!/usr/bin/env bash
# Runs all tests. Property tests draw the same every time, so that a failure is the change's; make campaign looks for what
# nobody has seen. The race detector looks at the one test that has many ask the book at the same time. Packages that start
# control planes run one after the other; most of their tests wait for something most of the time, so that four of them run at
# once whatever the number of processors. Fuzz targets run for seconds beyond their seeds. Arguments go to every go test.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}

# The packages with what their tests import, by which those with property tests are known.
list=$("$go" list -f '{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./cmd/... ./pkg/...)
drawing=$(awk '/pgregory.net\/rapid/ {print $1}' <<<"$list")
others=$(awk '!/pgregory.net\/rapid/ {print $1}' <<<"$list")

"$go" test -shuffle=on -timeout=10m "$@" $others
"$go" test -shuffle=on -timeout=20m "$@" $drawing -rapid.seed=1
"$go" test -race "$@" ./pkg/book -run '^TestManyAskAtOnce$'
# A thousand histories of each kind.
"$go" test -timeout=10m "$@" ./pkg/book -run '^(TestStorms|TestRandomHistories|TestRandomBreaths)$' -rapid.checks=1000 -rapid.seed=2
GO=$go hack/fuzz.sh
"$go" test -shuffle=on -timeout=40m -p=1 -parallel=4 "$@" ./test/...
