#!/usr/bin/env bash
# Runs the test of documents.py with Debian's interpreter.
set -euo pipefail
cd bazel/lint
exec env PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 documents_test.py -v
