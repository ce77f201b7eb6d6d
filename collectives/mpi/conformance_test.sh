#!/usr/bin/env bash
# Runs the conformance suite under mpirun, with each number of processes.
set -euo pipefail

rank=$1
# Short, because Open MPI makes Unix sockets in it.
directory=$(mktemp -d /tmp/hawser_mpi.XXXXXX)
trap 'rm -rf "$directory"' EXIT
export TMPDIR=$directory HOME=${HOME:-$directory}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# One machine; containers may forbid to read the memory of other processes.
export OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_MCA_plm_rsh_agent=/bin/false

run() {
  local processes=$1 filter=$2
  export HAWSER_MPI_TEST_DIR=$directory/stores.$processes
  mkdir "$HAWSER_MPI_TEST_DIR"
  echo "== $processes processes"
  mpirun --oversubscribe -np "$processes" "$rank" --gtest_brief=1 --gtest_filter="$filter" </dev/null
}

run 1 '*Ranks1:MpiBackendTest.*'
run 3 '*Ranks3:MpiSubgroupTest.*'
for processes in 2 4 7 8; do
  run "$processes" "*Ranks$processes"
done
