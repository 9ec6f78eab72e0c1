#!/usr/bin/env bash
# Measures which production code the scenarios on a real control plane run: the scheduler and the CLI are built so that they count
# it, and write it each second, since many are killed. RUN is a regular expression of names of scenarios. With UNITS=1 the tests
# beside the code are measured as well; a second call adds to what is known of the same state of the code. BEFORE, the blocks.json
# of another state, has those blocks named that something covered then and nothing covers now.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go} root=$PWD
dir=$root/logs/cover/$(hack/state.sh) code=./pkg/...,./cmd/...
mkdir -p "$dir/bin"

# Links to all tools, and in place of two of them what counts.
for tool in "$root"/bin/*; do ln -sfn "$tool" "$dir/bin/"; done
rm -f "$dir"/bin/{jobtree-scheduler,kubectl-runs}
counting=(-cover -covermode=atomic -coverpkg="$code" -tags=counters)
"$go" build "${counting[@]}" -ldflags "${LDFLAGS:-}" -o "$dir/bin/jobtree-scheduler" ./cmd/scheduler
"$go" build "${counting[@]}" -o "$dir/bin/kubectl-runs" ./cmd/kubectl-runs
for name in kubectl-jobtree kubectl_complete-runs kubectl_complete-jobtree; do ln -sfn kubectl-runs "$dir/bin/$name"; done

# profile NAME: makes a profile of all that was counted under a name.
profiles=()
profile() {
  "$go" tool covdata textfmt -i="$dir/$1" -o="$dir/$1.txt"
  profiles+=("$1=$dir/$1.txt")
}

mkdir -p "$dir/real"
GOCOVERDIR=$dir/real JOBTREE_BIN=$dir/bin PATH="$dir/bin:$PATH" \
  "$go" test ./test/integration -count=1 -shuffle=on -timeout=60m -parallel=4 ${RUN:+-run "$RUN"} || failed=1
rm -f "$dir"/real/now.*
profile real
if [[ -n ${UNITS:-} ]]; then
  mkdir -p "$dir/units"
  [[ ! -d test/story ]] || stories=./test/story/...
  PKG=${UNIT_PACKAGES:-./pkg/... ./cmd/... ${stories:-}} RUN='' hack/test.sh -cover -coverpkg="$code" -test.gocoverdir="$dir/units" || failed=1
  profile units
fi
before=${BEFORE:+$(realpath "$BEFORE")}
cd tools/mutants
"$go" run ./blocks -o "$dir/blocks.json" ${before:+-before "$before"} "${profiles[@]}" || failed=1
echo "The blocks are in $dir/blocks.json."
exit "${failed:-0}"
