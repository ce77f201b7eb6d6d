#!/usr/bin/env bash
# The protections asked for in .bazelrc are in the binaries that come out.
set -euo pipefail
binary=$1
failed=0

expect() {
  local what=$1 pattern=$2 text=$3
  if ! grep -qE "$pattern" <<<"$text"; then
    echo "missing: $what" >&2
    failed=1
  fi
}

header=$(readelf --wide --file-header "$binary")
segments=$(readelf --wide --segments "$binary")
dynamic=$(readelf --wide --dynamic "$binary")

expect "position-independent executable" 'Type:[[:space:]]+DYN' "$header"
expect "read-only relocations" 'GNU_RELRO' "$segments"
expect "binding at start" 'BIND_NOW|FLAGS_1.*NOW' "$dynamic"
expect "a stack that is not executable" 'GNU_STACK.* RW +0x' "$segments"
expect "stack protector" '__stack_chk_fail' "$(readelf --wide --dyn-syms "$binary")"
exit "$failed"
