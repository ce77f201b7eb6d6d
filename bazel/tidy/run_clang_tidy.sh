#!/usr/bin/env bash
# run_clang_tidy.sh CONFIG STAMP SOURCE FLAGS...
# Prints clang-tidy's findings and fails on any; creates STAMP otherwise.
set -euo pipefail
config=$1 stamp=$2 source=$3
shift 3
command -v clang-tidy >/dev/null || { echo "clang-tidy is missing: apt-get install clang-tidy" >&2; exit 1; }
if ! findings=$(clang-tidy --quiet --config-file="$config" "$source" -- "$@" 2>/dev/null); then
  echo "$findings" >&2
  exit 1
fi
touch "$stamp"
