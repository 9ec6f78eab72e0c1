#!/usr/bin/env bash
# Soaks the scheduler on a real control plane: kills it, crowds its fleet and has nodes fail, for SOAK (1h) each. Everything goes to
# LOG; a line is printed now and then, and the last one says what was done and whether everything that always holds held. It exits
# with 1 if anything did not. It needs no terminal and outlives one.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go} log=${LOG:-logs/soak.log} lasting=(TestKillsUnderAMixedLoad TestSoak TestNodeStorm)
# These do not last: they have their full size here, and less among all tests.
full=(TestMassLoss TestKillTheScheduler TestKillTheSchedulerInNarrowStarts TestKillTheSchedulerInBreath TestStandbyTakesOver
  TestStandbyTakesOverFromAStoppedLeader TestRaceForMoney TestALargeGroup)
tests=("${lasting[@]}" "${full[@]}")
export JOBTREE_SOAK=${SOAK:-1h}
source hack/lasting.sh

say "soak: ${lasting[*]} take $JOBTREE_SOAK each, ${full[*]} some minutes more; all that they say is in $log"
names=$(IFS='|'; echo "${tests[*]}")
status=0
"$go" test ./test/integration -count=1 -v -timeout=48h -parallel=1 -run "^($names)\$" >>"$log" 2>&1 || status=$?

# What the tests tell at their end: "N kills in M rounds", and "kill:N" among what a storm did.
told() { grep -oE '[0-9]+ kills in [0-9]+ rounds, |kill:[0-9]+' "$log" || true; }
kills=$(told | sed -E 's/ kills.*//; s/kill://' | awk '{ n += $1 } END { print n + 0 }')
passed=$(grep -cE '^--- PASS: ' "$log" || true)
did="$passed of ${#tests[@]} tests passed, $kills kills of the scheduler, in $(elapsed)"
if [ "$status" -ne 0 ] || [ "$passed" -ne "${#tests[@]}" ]; then
  grep -E '^(--- FAIL|panic:|FAIL)|_test.go:[0-9]+: ' "$log" | tail -40 || true
  fail "soak FAILED: $did; see $log"
fi
say "soak passed: $did; every invariant held"
