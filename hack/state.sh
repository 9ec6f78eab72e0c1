#!/usr/bin/env bash
# Prints a name of the state of the code: the commit, and if anything differs from it, a few letters that tell what.
set -euo pipefail
cd "$(dirname "$0")/.."
differs() {
  git diff HEAD
  git ls-files --others --exclude-standard -z | xargs -0r sha1sum 2>/dev/null || true # a link to a directory has no sum
}
changes=$(differs | sha1sum)
nothing=$(sha1sum </dev/null)
commit=$(git rev-parse --short=12 HEAD)
[ "$changes" = "$nothing" ] && echo "$commit" || echo "$commit-${changes:0:8}"
