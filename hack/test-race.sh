#!/usr/bin/env bash
# Plays scenarios with bin/race/jobtree-scheduler, which tells when two of its goroutines use the same memory at once, and fails
# if it has, or a scenario does. They are those in which most happens at the same time: pods, nodes and money that come and go,
# swaps, groups of others, changes of leader. Arguments go to go test.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
scenarios=(TestStoriesAgree TestDeletedRunsGiveBackTheirGPUs TestLostNodes TestNodeDeletedWhileBinding TestTurns
  TestAJobIsAGang TestAJobSetIsAGang TestStandbyTakesOver TestNodesLostWhileAWidthChanges TestKillTheSchedulerInBreath)
export JOBTREE_STORIES='spares|shards-fill|gpu-hours-spent|evicted-again|restart-exit|grow-and|loan-is'
names="^($(IFS='|'; echo "${scenarios[*]}"))\$"
[[ $("$go" test ./test/integration -list "$names" | grep -c '^Test') == "${#scenarios[@]}" ]] ||
  { echo "hack/test-race.sh names scenarios that are not there: $names" >&2; exit 1; }

# Processes that were killed have written what they found by then, each into a file of its own.
found=$(mktemp -d)
trap 'rm -rf "$found"' EXIT
status=0
JOBTREE_SCHEDULER=$PWD/bin/race/jobtree-scheduler GORACE="log_path=$found/race" \
  "$go" test ./test/integration -count=1 -timeout=30m -parallel=4 -run "$names" "$@" || status=$?
if compgen -G "$found/race.*" >/dev/null; then
  cat "$found"/race.* >&2
  echo 'The scheduler has data races: see above.' >&2
  status=1
fi
exit "$status"
