#!/usr/bin/env bash
# Runs a program as several ranks that share the first GPU of this machine.
#
#   run_ranks.sh NUMBER PROGRAM [ARGUMENT...]
#
# NCCL refuses two ranks on one GPU, unless they seem to run on different
# machines: each gets a host id of its own, and they connect by sockets on the
# loopback interface. Ends with 1 if a rank fails, and ends the others.
set -uo pipefail

size=$1
shift
directory=$(mktemp -d "${TEST_TMPDIR:-${TMPDIR:-/tmp}}/ranks.XXXXXX")
pids=()
finish() {
  [ "${#pids[@]}" = 0 ] || kill "${pids[@]}" 2>/dev/null
  rm -rf "$directory"
}
trap finish EXIT

export HAWSER_GPU_TEST_SIZE=$size HAWSER_GPU_TEST_DIR=$directory
export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0}
export NCCL_SOCKET_IFNAME=lo NCCL_NET=Socket NCCL_IB_DISABLE=1
for ((rank = 0; rank < size; rank++)); do
  HAWSER_GPU_TEST_RANK=$rank NCCL_HOSTID=hawser-test-$rank "$@" </dev/null &
  pids+=($!)
done

status=0
for ((rank = 0; rank < size; rank++)); do
  # The next rank that ends, in any order.
  if ! wait -n; then
    status=1
    break
  fi
done
[ "$status" != 0 ] || pids=()
exit "$status"
