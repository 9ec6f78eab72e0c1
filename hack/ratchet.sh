#!/usr/bin/env bash
# Has what is entangled get less: compares the packages that decide, and those that carry out, with hack/ratchet/figures.txt.
# With -update it writes the figures that are, with -places it prints what uses a layer above its own.
set -euo pipefail
cd "$(dirname "$0")/.."
packages='book/... budget/... topology resolver forecast plan group lifecycle reconcile controllers plugins sim'
exec "${GO:-go}" run ./hack/ratchet "$@" $(printf './pkg/%s ' $packages)
