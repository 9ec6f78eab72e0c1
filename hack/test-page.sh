#!/usr/bin/env bash
# Tests the page of "kubectl runs dashboard" in a browser. Screenshots go to test/page/screenshots, or to the directory that
# SCREENSHOTS names; with the argument -update those that docs show are written to docs/images as well. TIMINGS=1 fails on
# what takes too long as well. With RERUN=1 what fails runs once more, since on a machine that is busy with other things
# something may be seen too late. Arguments go to go test.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v chromium-headless-shell chromium google-chrome >/dev/null ||
  { echo 'No Chromium is installed: apt-get install chromium-headless-shell' >&2; exit 1; }
command -v prometheus >/dev/null || { echo 'Prometheus is not installed: apt-get install prometheus' >&2; exit 1; }
cd test/page
run() { "${GO:-go}" test -count=1 -timeout=15m . "$@"; }
run "$@" && exit
[[ ${RERUN:-} == 1 ]] || exit 1
echo 'The page is tested once more.'
run "$@"
