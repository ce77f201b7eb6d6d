"""References in the documents: links, files, Bazel targets and tests that they name exist.

    git ls-files | python3 bazel/lint/documents.py

Reads paths from stdin, in the repository root. Prints one line per reference that leads nowhere and
ends with 1 if there is one.
"""

import posixpath
import re
import sys

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
FILE = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:h|cc|cu|proto|py|sh|bzl|md|txt))`")
TARGET = re.compile(r"`//([\w/]*):([\w.]+)`")
# `SuiteTest`, `SuiteTest.Case`, and further cases of the same suite: `.Other`.
TEST = re.compile(r"`(\w+Test)(?:\.(\w+))?`|`\.([A-Z]\w+)`")
DEFINITION = re.compile(r"\bTEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\s*\)")
PYTHON_SUITE = re.compile(r"^class (\w+Test)\b", re.M)


def defined_tests(files):
    """The (suite, case) of each test of the sources, and (suite, None) of each suite."""
    found = set()
    for path, text in files.items():
        if path.endswith((".cc", ".cu")):
            for suite, case in DEFINITION.findall(text):
                found.update([(suite, case), (suite, None)])
        elif path.endswith(".py"):
            found.update((suite, None) for suite in PYTHON_SUITE.findall(text))
    return found


def is_target(name, build):
    """Whether a BUILD file names the target, by itself, in a list or through simulation_test."""
    if f'"{name}"' in build:
        return True
    macro = rf'simulation_test\(\s*name = "{re.escape(name.removesuffix("_test"))}"'
    return bool(re.search(macro, build))


def dead_references(path, text, files, tests):
    """Line, kind and text of each reference that leads nowhere."""
    for number, line in enumerate(text.splitlines(), 1):
        for reference in LINK.findall(line):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), reference))
            if "://" not in reference and target not in files:
                yield number, "file", target
        for reference in FILE.findall(line):
            if reference not in files:
                yield number, "file", reference
        for folder, name in TARGET.findall(line):
            if not is_target(name, files.get(posixpath.join(folder, "BUILD.bazel"), "")):
                yield number, "target", f"//{folder}:{name}"
    suite = None
    for match in TEST.finditer(text):
        suite = match.group(1) or suite
        case = match.group(2) or match.group(3)
        if (suite, case) not in tests:
            reference = f"{suite}.{case}" if case else suite
            yield text.count("\n", 0, match.start()) + 1, "test", reference


def breaches(files):
    """Lines that say which references lead nowhere; `files` has the text of each path."""
    tests = defined_tests(files)
    found = []
    for path, text in files.items():
        if path.endswith(".md"):
            for line, kind, reference in dead_references(path, text, files, tests):
                found.append(
                    f"{path}:{line}: the {kind} {reference} does not exist: correct or remove the"
                    " reference"
                )
    return found


def main():
    files = {}
    for path in sys.stdin.read().split("\n"):
        if path:
            with open(path, encoding="utf-8", errors="replace") as file:
                files[path] = file.read()
    found = breaches(files)
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
