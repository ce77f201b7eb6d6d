#!/usr/bin/env python3
"""Checks that tests notice faults: applies each mutant, and runs its tests.

A mutant is a file of patches/: a patch of one or more sources, after lines that
say what it breaks, and which tests must fail:

    # what: The values in replies of a store server are not counted.
    # test: //store/grpc:server_test

Each test that is named must pass without the mutant (other suites show that)
and must fail, or run into its time limit, with it. A mutant whose tests pass
has survived: the test is missing, or does not look.

The mutants of fuzz_patches/ are for fuzz targets instead, which must find them
within their 20 s:

    # fuzz: //store:endpoint_fuzz_test

These targets run with --config=fuzz, which needs clang.

Usage: tests/mutants/run.py [--fuzz] [--part=K/N] [NAME...]

Without names it runs all of them, or with --part each Nth one from the Kth on.
--part=turn/N takes K from the number of commits, so that each N commits run all.
--fuzz takes the mutants from fuzz_patches/.
The sources are changed in place, and must be unchanged at the start; they are
restored at the end, also after an interruption. Prints a line for each mutant.
Exit code: 0 if all were noticed, 1 otherwise, 2 for a wrong usage.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MUTANTS = ROOT / "tests" / "mutants"
# Of a test; a mutant may make it wait for ever.
TEST_TIMEOUT_S = 120


def git(*arguments):
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def mutant_tests(patch):
    """Returns the tests and the fuzz targets that the patch names."""
    head = patch.read_text().split("\n--- ", 1)[0]
    if not re.search(r"^# what: \S.*\.$", head, re.MULTILINE):
        raise ValueError(f"{patch.name}: no line '# what: ... .' before the patch")
    tests = re.findall(r"^# test: (//\S+)$", head, re.MULTILINE)
    fuzz_targets = re.findall(r"^# fuzz: (//\S+)$", head, re.MULTILINE)
    if not tests and not fuzz_targets:
        raise ValueError(
            f"{patch.name}: no line '# test: //...' or '# fuzz: //...' before the patch"
        )
    return tests, fuzz_targets


def survivors(tests, *options):
    """Runs the tests; returns a text for each that does not notice the mutant."""
    if not tests:
        return []
    command = ["./bazelw", "test", "-k", f"--test_timeout={TEST_TIMEOUT_S}"]
    command += ["--test_output=summary", "--test_tag_filters=", *options, *tests]
    run = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    output = run.stdout + run.stderr
    found = []
    for test in tests:
        result = re.search(
            rf"^{re.escape(test)} .*?(PASSED|FLAKY|FAILED TO BUILD|NO STATUS|"
            r"TIMEOUT|FAILED)",
            output,
            re.MULTILINE,
        )
        if result is None or result.group(1) not in ("FAILED", "TIMEOUT"):
            state = "no result" if result is None else result.group(1)
            found.append(f"{test}: {state}")
    if found and run.returncode not in (0, 3):
        errors = [line for line in output.splitlines() if "error:" in line]
        found += errors[:3]
    return found


def run_mutant(patch):
    """Returns a text for each test that does not notice the mutant."""
    tests, fuzz_targets = mutant_tests(patch)
    applied = git("apply", str(patch))
    if applied.returncode != 0:
        return [f"does not apply: {applied.stderr.strip()}"]
    try:
        return survivors(tests) + survivors(fuzz_targets, "--config=fuzz")
    finally:
        reverted = git("apply", "-R", str(patch))
        if reverted.returncode != 0:
            sys.exit(f"cannot restore the sources: {reverted.stderr}")


def chosen(folder, names, part):
    patches = sorted((MUTANTS / folder).glob("*.patch"))
    if names:
        unknown = set(names) - {patch.stem for patch in patches}
        if unknown:
            raise ValueError(f"no such mutant: {', '.join(sorted(unknown))}")
        return [patch for patch in patches if patch.stem in names]
    if part is None:
        return patches
    match = re.fullmatch(r"(\d+|turn)/([1-9]\d*)", part)
    if match is None:
        raise ValueError("--part needs K/N or turn/N")
    turns = int(match.group(2))
    if match.group(1) == "turn":
        first = int(git("rev-list", "--count", "HEAD").stdout) % turns
    else:
        first = int(match.group(1)) % turns
    return patches[first::turns]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--fuzz", action="store_true", help="those of fuzz_patches/")
    parser.add_argument("--part", help="K/N or turn/N")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    try:
        folder = "fuzz_patches" if arguments.fuzz else "patches"
        patches = chosen(folder, arguments.names, arguments.part)
        for patch in patches:
            mutant_tests(patch)
    except ValueError as error:
        parser.error(str(error))
    changed = git("status", "--porcelain", "--untracked-files=no").stdout
    if changed:
        parser.error(f"the sources have changes; commit them first:\n{changed}")
    begin = time.monotonic()
    survived = 0
    for patch in patches:
        start = time.monotonic()
        found = run_mutant(patch)
        survived += bool(found)
        state = "SURVIVED" if found else "noticed"
        print(f"{state} {patch.stem} {time.monotonic() - start:.0f} s", flush=True)
        for text in found:
            print(f"  {text}", flush=True)
    seconds = time.monotonic() - begin
    print(f"{len(patches) - survived} of {len(patches)} mutants noticed, {seconds:.0f} s")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
