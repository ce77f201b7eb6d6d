#!/usr/bin/env bash
# Runs a Python test with Debian's interpreter, its grpcio and its numpy.
set -euo pipefail
cd tests/interop
exec env PYTHONPATH=.:../../clients/python PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "$1" -v
