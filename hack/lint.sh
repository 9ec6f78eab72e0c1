#!/usr/bin/env bash
# Checks what the compiler does not: formatting, vet, and the house rules that can be checked by a pattern.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
failed=0

# refuse MESSAGE: fails with the message if standard input has lines.
refuse() {
  local found
  found=$(cat)
  if [ -n "$found" ]; then
    printf '%s:\n%s\n' "$1" "$found" >&2
    failed=1
  fi
}

mapfile -t sources < <(git ls-files --cached --others --exclude-standard -- '*.go' | while read -r f; do [ -f "$f" ] && echo "$f"; done)
mapfile -t written < <(printf '%s\n' "${sources[@]}" | grep -v '/zz_generated\.')

gofmt -l "${sources[@]}" | refuse 'not formatted; run gofmt -w'
"$go" vet ./... || failed=1
grep -nE '^(func|type) (\([^)]*\) )?[A-Za-z]*(Manager|Helper|Util|Info)[A-Z({ ]' "${written[@]}" | refuse 'names that say nothing'
grep -nE '\bt\.Skip|\bb\.Skip|testing\.Short\(' "${written[@]}" | refuse 'tests that may not run'
grep -n 'time\.Sleep' $(printf '%s\n' "${written[@]}" | grep '_test\.go$') /dev/null | refuse 'tests that sleep; wait for what they wait for'
wc -l "${written[@]}" | awk '$2 != "total" && $1 > 400' | refuse 'files of more than 400 lines'

# A pure package may be called from anywhere: it has no clients, clocks or randomness of its own.
pure='pkg/(apis|book|budget|forecast|ledger|lifecycle|plan|resolver|topology)(/|$)'
"$go" list -f '{{.ImportPath}}: {{join .Imports " "}}' ./pkg/... | grep -E "$pure" |
  grep -E ' (k8s\.io/client-go|sigs\.k8s\.io/controller-runtime/pkg/(client|manager|cache)|math/rand|k8s\.io/utils/clock)' |
  refuse 'pure packages that import a client, a clock or randomness'
exit "$failed"
