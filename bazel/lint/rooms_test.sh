#!/usr/bin/env bash
# Runs the test of rooms.py with Debian's interpreter.
set -euo pipefail
cd bazel/lint
exec env PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 rooms_test.py -v
