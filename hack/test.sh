#!/usr/bin/env bash
# Runs all tests. Property tests draw the same every time, so that a failure is the change's; make campaign looks for what
# nobody has seen. The race detector looks at packages that do many things at the same time, and at the one test that has many
# ask the book at once. Of packages that start control planes two run at a time; most of their tests wait for something most of
# the time, so that six run at once whatever the number of processors: with more two cores have nothing left, and what an API
# server answers in seconds comes too late for who waits for it. The one that takes longest begins. Fuzz targets run for
# seconds beyond their seeds.
# Arguments go to every go test.
# With RERUN=1 up to three scenarios that fail run once more by themselves, and the report at the end names them: on a machine
# that is busy with other things a scenario may miss its time.
# With PKG, packages or patterns, only their tests run, in the same way but without more histories and fuzzing; RUN is a regular
# expression of names of tests.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go} scenarios=(-shuffle=on -timeout=40m -p=2 -parallel=6)

# real: of the packages that it reads, those that start control planes, the longest first.
real() {
  awk '!/\/jobtree\/test\// || /\/jobtree\/test\/story/ {next} /integration$/ {print; next} {rest = rest $0 "\n"}
    END {printf "%s", rest}'
}

# step NAME: says what comes now, and when.
step() { printf '\n-- %s (%dm%02ds)\n' "$1" $((SECONDS / 60)) $((SECONDS % 60)); }

# unit PATTERNS -- FLAGS: runs the tests of packages without a control plane, some under the race detector. Those with property
# tests are known by what their tests import.
unit() {
  local patterns=() list draw race names flags seed
  while [[ $1 != -- ]]; do patterns+=("$1"); shift; done
  shift
  list=$("$go" list -f '{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}' "${patterns[@]}")
  for race in 0 1; do
    for draw in 0 1; do
      names=$(awk -v draw=$draw -v race=$race '
        ($0 ~ /pgregory.net\/rapid/) == draw && ($1 ~ /\/pkg\/(controllers|plugins|cli)(\/|$)/) == race {print $1}' <<<"$list")
      flags=() seed=()
      [[ $race == 0 ]] || flags=(-race)
      [[ $draw == 0 ]] || seed=(-rapid.seed=1)
      [[ -z $names ]] || "$go" test "${flags[@]}" -shuffle=on -timeout=20m $names "$@" "${seed[@]}"
    done
  done
}
export GOFLAGS="${GOFLAGS:-} -vet=off -ldflags=-w" # make lint vets all there is, once, and nobody debugs a test's binary
export GOGC=${GOGC:-400} # there is memory enough, and of processors too few: a third of the work of many tests is garbage
export GORACE=atexit_sleep_ms=0 # else each package under the race detector rests for a second in the end

if [[ -n ${PKG:-} ]]; then
  named=(${RUN:+-run "$RUN"})
  packages=$("$go" list $PKG)
  with=$(real <<<"$packages")
  without=$(grep -vxF "${with:-none}" <<<"$packages" || true)
  [[ -z $without ]] || unit $without -- "$@" "${named[@]}"
  [[ -z $with ]] || "$go" test "${scenarios[@]}" $with "$@" "${named[@]}"
  exit
fi
step 'unit and property tests, simulated stories'
unit ./cmd/... ./pkg/... ./hack/... ./test/story/... -- "$@"
"$go" test -race "$@" ./pkg/book -run '^TestManyAskAtOnce$'
step 'a thousand histories of each kind'
"$go" test -timeout=10m "$@" ./pkg/book -run '^(TestStorms|TestRandomHistories|TestRandomBreaths)$' -rapid.checks=1000 -rapid.seed=2
step 'fuzzing'
GO=$go hack/fuzz.sh
(cd tools/mutants && "$go" test ./... "$@")
step 'the PodGroups of the coscheduling plugin as it is released'
(cd tools/coscheduling && "$go" test ./... "$@")
step 'scenarios on real control planes'
with=$("$go" list ./test/... | real)
if [[ ${RERUN:-} != 1 ]]; then
  "$go" test "${scenarios[@]}" $with "$@"
  exit
fi
report=$(mktemp)
trap 'rm -f "$report"' EXIT
"$go" run gotest.tools/gotestsum@v1.13.0 --format=pkgname-and-test-fails --rerun-fails=1 --rerun-fails-max-failures=3 \
  --rerun-fails-run-root-test --rerun-fails-report="$report" --packages="$with" -- "${scenarios[@]}" "$@" || failed=1
if [[ -s $report ]]; then
  echo 'Scenarios that failed and ran once more:'
  cat "$report"
fi
exit "${failed:-0}"
