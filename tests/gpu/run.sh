#!/usr/bin/env bash
# Runs all tests that need a GPU, and measures all-reduce beside NCCL.
#
#   tests/gpu/run.sh [--dry-run] [--host=USER@MACHINE]
#
# Builds here with --config=cuda, and runs on this machine, or, with --host, on
# another one, which needs the driver and a CUDA toolkit with NCCL in
# /usr/local/cuda, but no compiler: the programs are carried there with the
# libraries that they use. --dry-run prints the steps instead. The last lines
# say which steps passed. Ends with 1 if one failed, and with 2 if the machine
# has no GPU.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

dry_run=false host=
for argument in "$@"; do
  case $argument in
  --dry-run) dry_run=true ;;
  --host=?*) host=${argument#--host=} ;;
  *)
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2
    exit 64
    ;;
  esac
done

# Tests of operations on tensors, one program each.
readonly OPERATION_TESTS=(
  //bazel/cuda/test:cuda_library_test
  //tensor/backend/cuda:cuda_allocator_test
  //tensor/backend/cuda/tests:all
  //tests/cuda:training_step_test
)
# Programs of one rank.
readonly RANK_PROGRAMS=(
  //tests/gpu:nccl_conformance_rank
  //tests/gpu:nccl_training_rank
  //tests/gpu:nccl_bandwidth_rank
)

say() { echo "== $*"; }

# Prints the programs to run: a test of operations, or a rank program and the
# number of ranks.
plan() {
  local target size tests
  tests=$(list_operation_tests)
  for target in $tests; do echo "1 $target"; done
  for target in nccl_conformance_rank nccl_training_rank; do
    for size in 1 2 4; do echo "$size tests/gpu/$target"; done
  done
  echo "2 tests/gpu/nccl_bandwidth_rank"
}

list_operation_tests() {
  ./bazelw query --noshow_progress "attr(tags, gpu, tests(set(${OPERATION_TESTS[*]})))" |
    sed -e 's#^//##' -e 's#:#/#'
}

if $dry_run; then
  say "build: ./bazelw build --config=cuda ${OPERATION_TESTS[*]} ${RANK_PROGRAMS[*]}"
  [ -z "$host" ] || say "carry the programs, their data and their libraries to $host"
  plan | while read -r size program; do
    say "run: $program, $size $([ "$size" = 1 ] && echo rank || echo ranks)${host:+, on $host}"
  done
  exit 0
fi

say "build"
./bazelw build --config=cuda "${OPERATION_TESTS[@]}" "${RANK_PROGRAMS[@]}"

# A folder with the programs as they lie in the tree, the data that they read,
# the libraries that they need beyond glibc and the toolkit, and the plan.
pack=$(mktemp -d "${TMPDIR:-/tmp}/hawser_gpu.XXXXXX")
trap 'rm -rf "$pack"' EXIT
say "pack"
plan >"$pack/steps"
mapfile -t steps <"$pack/steps"
mkdir "$pack/lib"
for step in "${steps[@]}"; do
  program=${step#* }
  mkdir -p "$pack/$(dirname "$program")"
  cp -f "bazel-bin/$program" "$pack/$program"
  ldd "bazel-bin/$program" |
    awk '$3 ~ /^\// && $3 !~ /cuda|\/(libc|libm|libdl|librt|libpthread|ld-linux[^\/]*)\.so/ {print $3}' |
    while read -r library; do cp -Lnu "$library" "$pack/lib/"; done
done
mkdir -p "$pack/tests/testdata"
cp tests/testdata/training_golden.json "$pack/tests/testdata/"
cp tests/gpu/run_ranks.sh tests/gpu/run_steps.sh "$pack/"

if [ -z "$host" ]; then
  "$pack/run_steps.sh"
else
  say "carry to $host"
  folder=$(ssh "$host" mktemp -d)
  trap 'rm -rf "$pack"; ssh "$host" rm -rf "$folder"' EXIT
  tar -C "$pack" -cz . | ssh "$host" tar -C "$folder" -xz
  ssh "$host" "$folder/run_steps.sh"
fi
