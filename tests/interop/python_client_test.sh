#!/usr/bin/env bash
# Runs the Python tests with Debian's interpreter and its grpcio.
set -euo pipefail
cd tests/interop
exec env PYTHONPATH=. PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 python_client_test.py -v
