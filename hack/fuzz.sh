#!/usr/bin/env bash
# Runs every fuzz target of ours for a while: FUZZ_TIME each, 2s by default. An input that fails is written below the package's
# testdata/fuzz, where every go test tries it again: commit it with the fix. A package that has a Kubernetes client below it is
# fuzzed without the guidance of coverage: all of the client would have to be built anew for it.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT

# The fuzzer's own clock can fail a target that found nothing (golang/go#75804, mended in Go 1.27): then this line stands alone.
ran_out() { grep -A2 '^--- FAIL' "$built/log" | tail -n +2 | cmp -s - <(printf '    context deadline exceeded\nFAIL\n'); }

targets() { grep -hoE '^func Fuzz[A-Za-z0-9]*' "$1"/*_test.go | cut -d' ' -f2; }

for package in $(grep -rlE --include='*_test.go' '^func Fuzz' pkg | xargs -n1 dirname | sort -u); do
  guided=-fuzz=.
  "$go" list -deps "./$package" | grep '^k8s.io/client-go/' >/dev/null && guided=
  "$go" test -c $guided -o "$built/test" "./$package"
  known=$("$go" env GOCACHE)/fuzz/$("$go" list "./$package")
  for target in $(targets "$package"); do
    (cd "$package" && "$built/test" -test.run='^$' -test.fuzz="^$target\$" -test.fuzztime="${FUZZ_TIME:-2s}" -test.fuzzcachedir="$known") \
      >"$built/log" 2>&1 || ran_out || { cat "$built/log"; echo "FAIL $package $target"; exit 1; }
    echo "ok   $package $target: $(sed -nE 's/.*execs: ([0-9]+).*/\1/p' "$built/log" | tail -1) inputs"
  done
done
