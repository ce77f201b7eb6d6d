#!/usr/bin/env bash
# Runs a program as 1, 2 and 4 ranks on one GPU, and as one rank without a GPU,
# which then says what it skips.
#
#   nccl_test.sh RUN_RANKS PROGRAM
set -euo pipefail

run_ranks=$1 program=$2
sizes=(1)
[ ! -e /dev/nvidia0 ] || sizes=(1 2 4)
for size in "${sizes[@]}"; do
  echo "== $size ranks of $(basename "$program")"
  "$run_ranks" "$size" "$program"
done
