#!/usr/bin/env bash
# Runs the test of source_rules.py with Debian's interpreter.
set -euo pipefail
cd bazel/lint
exec env PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 source_rules_test.py -v
