#!/usr/bin/env bash
# Runs what tests/gpu/run.sh has packed, in the folder of this script.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1

say() { echo "== $*"; }

if ! compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
  say "this machine has no GPU (no /dev/nvidia0): nothing was run of"
  while read -r size program; do say "  $program, ranks: $size"; done <steps
  exit 2
fi
export LD_LIBRARY_PATH=$PWD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
while read -r _ program; do
  missing=$(ldd "$program" | awk '/not found/ {print $1}')
  if [ -n "$missing" ]; then
    say "$program does not find" $missing "on this machine: install the CUDA toolkit with NCCL in /usr/local/cuda"
    exit 1
  fi
done <steps

command -v nvidia-smi >/dev/null &&
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
results=()
failed=0
while read -r size program; do
  say "$program, ranks: $size"
  if timeout 900 ./run_ranks.sh "$size" "./$program"; then
    results+=("passed  $program, ranks: $size")
  else
    results+=("FAILED  $program, ranks: $size")
    failed=1
  fi
done <steps
printf '%s\n' "${results[@]}"
exit "$failed"
