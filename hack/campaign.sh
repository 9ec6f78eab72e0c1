#!/usr/bin/env bash
# Lets HISTORIES (20000) random histories of each kind happen to the book, and checks after every step what always holds. Everything
# goes to LOG; a line is printed for every few hundred, and the last one says how many there were and whether all was well. It exits
# with 1 at the first that was not, with how to have it again. It needs no terminal and outlives one.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go} log=${LOG:-logs/campaign.log} histories=${HISTORIES:-20000} step=${STEP:-500}
kinds='^(TestStorms|TestRandomHistories|TestRandomBreaths)$' number=3
source hack/lasting.sh

built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
"$go" test -c -o "$built/book.test" ./pkg/book >>"$log" 2>&1 || fail "campaign FAILED: pkg/book does not build; see $log"
say "campaign: $histories histories of each of $number kinds, $step at a time; all that is told of them is in $log"
had=0
while [ "$had" -lt "$histories" ]; do
  batch=$((histories - had < step ? histories - had : step))
  status=0
  (cd pkg/book && "$built/book.test" -test.v -test.timeout=24h -test.run "$kinds" -rapid.checks=$batch) >"$built/log" 2>&1 || status=$?
  cat "$built/log" >>"$log"
  if [ "$status" -ne 0 ] || [ "$(grep -cE '^--- PASS: ' "$built/log")" -ne "$number" ]; then
    grep -E 'To reproduce|_test.go:[0-9]+: ' "$built/log" | head -20 || true
    fail "campaign FAILED after $had histories of each kind without a fault, in $(elapsed); see $log"
  fi
  had=$((had + batch))
  say "$had of $histories histories of each kind, in $(elapsed)"
done
say "campaign passed: $((number * had)) histories, $had of each kind, in $(elapsed); every invariant held in all of them"
