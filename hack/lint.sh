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
  [ -z "$found" ] && return
  printf '%s:\n%s\n' "$1" "$found" >&2
  failed=1
}

mapfile -t sources < <(git ls-files --cached --others --exclude-standard -- '*.go' | xargs -r ls -d 2>/dev/null)
mapfile -t written < <(printf '%s\n' "${sources[@]}" | grep -v '/zz_generated\.')
mapfile -t tests < <(printf '%s\n' "${written[@]}" | grep '_test\.go$')

"$go" vet ./... || failed=1
for module in mutants coscheduling; do (cd tools/$module && "$go" vet ./...) || failed=1; done
refuse 'not formatted; run gofmt -w' < <(gofmt -l "${sources[@]}" 2>&1)
refuse 'names that say nothing' < <(grep -nE '^(func|type) (\([^)]*\) )?[A-Za-z]*(Manager|Helper|Util|Info)[A-Z({ ]' "${written[@]}")
refuse 'tests that may not run' < <(grep -nE '\b[tb]\.Skip|testing\.Short\(' "${written[@]}")
refuse 'tests that sleep; wait for what they wait for' < <(grep -n 'time\.Sleep' "${tests[@]}")
refuse 'files of more than 400 lines' < <(wc -l "${written[@]}" | awk '$2 != "total" && $1 > 400')

# The API's comments become the CRDs' texts, which are wrapped by whoever shows them.
wide='^pkg/apis/'
mapfile -t narrow < <(printf '%s\n' "${written[@]}" | grep -Ev "$wide")
refuse 'lines of more than 120 columns' < <(LC_ALL=C.UTF-8 grep -nE '^.{121,}' "${narrow[@]}")
refuse 'assignments in the head of an if that tests something else' < <(
  printf '%s\n' "${narrow[@]}" | grep -v '_test\.go$' |
    xargs grep -nE '^\s*(\} else )?if [A-Za-z_.]+(\[[^]]*\])?((, [A-Za-z_.]+)* [-+*/]?= |\+\+;|--;)' | grep -v '; err != nil'
)

GO=$go hack/ratchet.sh || failed=1

# A pure package has no clients, clocks or randomness of its own.
pure='^[^ ]*/pkg/(apis|audit|book|brake|budget|cli/kueue|cli/sbatch|config|dump|ending|forecast|group|lane|lifecycle|monitoring|news|nodeloss|outage|picture|plan|published|queueorder|rank|reconcile|resolver|restart|risk|sim|suspicion|topology)[/:]'
impure=' (k8s\.io/client-go|sigs\.k8s\.io/controller-runtime|math/rand|crypto/rand|k8s\.io/utils/clock)'
refuse 'pure packages that import a client, a clock or randomness' < <(
  "$go" list -f '{{.ImportPath}}: {{join .Imports " "}}' ./pkg/... | grep -E "$pure" | grep -E "$impure" | cut -d: -f1
)

# What people read is kept in one file, so that a change of it is read as well.
"$go" test ./test/texts || failed=1
exit "$failed"
