#!/usr/bin/env bash
# run_clang_tidy.sh CONFIG CHECKS STAMP SOURCE FLAGS...
# CHECKS are added to those of CONFIG.
# Prints clang-tidy's findings and fails on any; creates STAMP otherwise.
set -euo pipefail
config=$1 checks=$2 stamp=$3 source=$4
shift 4
command -v clang-tidy >/dev/null || { echo "clang-tidy is missing: apt-get install clang-tidy" >&2; exit 1; }
if ! findings=$(clang-tidy --quiet --config-file="$config" --checks="$checks" "$source" -- "$@" 2>/dev/null); then
  echo "$findings" >&2
  exit 1
fi
touch "$stamp"
