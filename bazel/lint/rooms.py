"""The floor plan: which room of the tree may include which.

    git ls-files | python3 bazel/lint/rooms.py

Reads paths from stdin, in the repository root. Prints one line per breach and ends with 1 if there
is one. docs/architecture.md describes the rooms.
"""

import ast
import collections
import posixpath
import re
import sys

# The floors from the bottom, each with its rooms. A room is a folder with all that lies in it, except
# for what is a room of its own. The files of one concept that lie on another floor than the rest of
# their folder are a room named without their ending: "store/open_store".
FLOORS = [
    ["telemetry/log", "telemetry/log_rate_limiter"],
    ["proto", "async"],
    ["fs", "telemetry"],
    ["ipc"],
    ["tensor/device"],
    ["tensor/memory"],
    ["tensor"],
    ["tensor/backend", "tensor/io"],
    ["tensor/ops"],
    ["autograd"],
    ["nn", "optim", "data"],
    ["net", "net/grpc"],
    ["net/server", "net/health"],
    ["net/auth", "net/http"],
    ["store"],
    ["store/hash", "store/prefix_store"],
    ["store/collect_values"],
    ["store/barrier", "store/file", "store/grpc", "store/redis"],
    ["store/etcd"],
    ["store/open_store"],
    ["collectives"],
    ["collectives/host"],
    ["collectives/gloo", "collectives/loopback", "collectives/mpi", "collectives/nccl"],
    ["collectives/make_group"],
    ["rpc/identity"],
    ["rpc/transport"],
    ["rpc/errors", "rpc/wire", "rpc/membership", "rpc/link"],
    ["rpc/functions", "rpc/peers", "rpc/inproc", "rpc/same_host"],
    ["rpc/grpc", "rpc/agent"],
    ["rpc/stream", "collectives/agent"],
    ["rref"],
    ["dist_autograd"],
    ["dist_optim", "ps/storage"],
    ["ps", "parallel"],
    ["launch"],
    ["cli"],
    ["benchmarks", "examples"],
]

# Rooms of tests and of what only tests use. They include from every floor; tests alone include them.
TEST_ROOMS = [
    "async/testing",
    "cli/testing",
    "collectives/nccl/testing",
    "collectives/testing",
    "data/tabular/testing",
    "launch/job/testing",
    "net/testing",
    "ps/testing",
    "rpc/grpc/tests",
    "rpc/same_host/tests",
    "rpc/stream/testing",
    "rpc/testing",
    "rpc/tests",
    "rref/testing",
    "store/testing",
    "telemetry/testing",
    "tensor/backend/cuda/testing",
    "tensor/backend/cuda/tests",
    "tests",
]

# Folders that are no part of the floor plan.
OUTSIDE = ["bazel", "examples/downstream"]

MAX_BUILD_LINES = 550
MAX_BUILD_LINES_BY_FOLDER = {"rpc/": 300}
MAX_CLASS_LINES = 150
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.M)
CLASS_HEAD = re.compile(
    r"^(?P<indent>[ \t]*)(?:class|struct)\s+"
    r"(?:\[\[\w+\]\]\s*|[A-Z_]+\([^)]*\)\s*)*"
    r"(?P<name>[\w:]+)[^;{]*\{$",
    re.M,
)


def folders(path):
    """The folders around a file, the innermost first."""
    folder = posixpath.dirname(path)
    while folder:
        yield folder
        folder = posixpath.dirname(folder)


class Plan:
    """The rooms and the floor of each."""

    def __init__(self, floors, test_rooms=(), outside=()):
        self.floor = {room: floor for floor, rooms in enumerate(floors) for room in rooms}
        self.test_rooms = set(test_rooms)
        self.outside = set(outside)
        self.floor.update((room, len(floors)) for room in self.test_rooms - self.floor.keys())

    def room(self, path):
        """The room of a file; None outside of the plan."""
        stem = re.sub(r"(_test|_benchmark)?\.\w+$", "", path)
        for place in [stem, *folders(path)]:
            if place in self.outside:
                return None
            if place in self.floor:
                return place
        return None

    def is_outside(self, path):
        return any(folder in self.outside for folder in folders(path))

    def is_test(self, path):
        return self.room(path) in self.test_rooms or bool(re.search(r"_test\.(cc|cu)$", path))


def is_code(path):
    return path.endswith((".h", ".cc", ".cu"))


def is_build_file(path):
    return posixpath.basename(path) in ("BUILD", "BUILD.bazel")


def includes(text):
    """Line and path of each include of the project's form."""
    return [(text.count("\n", 0, m.start()) + 1, m.group(1)) for m in INCLUDE.finditer(text)]


def check_rooms(plan, sources):
    """Every source lies in a room."""
    return [
        f"{path}:1: lies in no room: add its folder to FLOORS in bazel/lint/rooms.py"
        for path in sources
        if plan.room(path) is None and not plan.is_outside(path)
    ]


def check_floors(plan, sources):
    """Includes run down, and rooms of one floor do not include each other in a circle."""
    found = []
    level = collections.defaultdict(list)
    for path, text in sources.items():
        room = plan.room(path)
        if room is None:
            continue
        for line, header in includes(text):
            other = plan.room(header) if header in sources else None
            if other is None or other == room:
                continue
            if plan.is_test(path) and other in plan.test_rooms:
                continue
            if other in plan.test_rooms and room not in plan.test_rooms:
                why = "is for tests: only tests include it"
            elif plan.floor[other] > plan.floor[room]:
                why = f"{other} lies above {room}: move one of the two, or put an interface into {room}"
            else:
                if plan.floor[other] == plan.floor[room]:
                    level[room, other].append(f"{path}:{line}: includes {header}: ")
                continue
            found.append(f"{path}:{line}: includes {header}: {why}")
    return found + check_circles(level)


def check_circles(level):
    """Of rooms that reach each other by includes, those includes that are fewest.

    level  Lines of includes, by the pair of rooms.
    """
    reached = collections.defaultdict(set)
    for room, other in level:
        reached[room].add(other)
    reaches = {room: reachable(reached, room) for room in list(reached)}
    found = []
    circles = {
        frozenset(other for other in others if room in reaches.get(other, ()))
        for room, others in reaches.items()
        if room in others
    }
    for circle in circles:
        pairs = [pair for pair in level if circle.issuperset(pair)]
        room, other = min(pairs, key=lambda pair: (len(level[pair]), pair))
        why = f"{other} includes {room} in turn: move what {room} needs below both"
        found += [line + why for line in level[room, other]]
    return found


def reachable(edges, start):
    seen = set()
    waiting = list(edges[start])
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += edges.get(node, ())
    return seen


def check_inside(plan, sources):
    """Headers in a folder `internal` are included from their own room alone."""
    found = []
    for path, text in sources.items():
        for line, header in includes(text):
            if "internal" not in header.split("/") or header not in sources:
                continue
            room = plan.room(header)
            if plan.room(path) != room:
                why = f"this header is internal to {room}: include a public header of {room}"
                found.append(f"{path}:{line}: includes {header}: {why}")
    return found


def check_build_lines(path, text):
    """A BUILD file is not longer than one room's targets need."""
    limit = MAX_BUILD_LINES
    for folder, lines in MAX_BUILD_LINES_BY_FOLDER.items():
        if path.startswith(folder):
            limit = lines
    lines = len(text.splitlines())
    if lines <= limit:
        return []
    return [f"{path}:{limit + 1}: {lines} lines, above the limit of {limit}: divide the room"]


def check_classes(path, text):
    """A class has few enough declarations to be read at once."""
    found = []
    for head in CLASS_HEAD.finditer(text):
        end = re.compile(rf"^{head.group('indent')}}};$", re.M).search(text, head.end())
        inside = text[head.end() : end.start()] if end else ""
        lines = [line.strip() for line in inside.splitlines()]
        count = sum(1 for line in lines if line and not line.startswith("//"))
        if count > MAX_CLASS_LINES:
            line = text.count("\n", 0, head.start()) + 1
            found.append(
                f"{path}:{line}: {head.group('name')} has {count} lines of declarations, above the"
                f" limit of {MAX_CLASS_LINES}: divide it by responsibility"
            )
    return found


def strings(node, names=False):
    """The literal texts below a node; None if one depends on a name, unless `names` may occur."""
    texts = []
    for child in ast.walk(node):
        if isinstance(child, ast.Constant) and isinstance(child.value, str):
            texts.append(child.value)
        elif isinstance(child, ast.Name) and child.id != "select" and not names:
            return None
    return texts


def labels_in_macros(text):
    """The labels of this workspace that each function of a .bzl file names."""
    return {
        function.name: {label for label in strings(function, names=True) if label.startswith("//")}
        for function in ast.parse(text).body
        if isinstance(function, ast.FunctionDef)
    }


def targets(path, text, macros):
    """The targets of a BUILD file whose sources and deps are literals."""
    folder = posixpath.dirname(path)
    found = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        attributes = {k.arg: k.value for k in node.keywords if k.arg}
        if "name" not in attributes or node.func.id in ("select", "glob"):
            continue
        name = strings(attributes["name"])
        owned = {}
        for attribute in ("hdrs", "srcs", "textual_hdrs"):
            texts = strings(attributes[attribute]) if attribute in attributes else []
            owned[attribute] = [posixpath.join(folder, t.lstrip(":")) for t in texts or []]
        deps = strings(attributes["deps"]) if "deps" in attributes else []
        added = macros.get(node.func.id, set())
        found.append(
            {
                "line": node.lineno,
                "build": path,
                "label": f"//{folder}:{name[0]}" if name and len(name) == 1 else None,
                "owned": owned,
                "deps": None if deps is None else {absolute(folder, dep) for dep in deps} | added,
            }
        )
    return found


def absolute(folder, label):
    """The label in its full form."""
    if label.startswith(":"):
        return f"//{folder}{label}"
    if label.startswith("//") and ":" not in label:
        return f"{label}:{label.rsplit('/', 1)[1]}"
    return label


def check_deps(sources, builds, extensions):
    """A target depends directly on the target of each header that its sources include."""
    macros = {}
    for text in extensions.values():
        macros.update(labels_in_macros(text))
    everything = [target for path, text in builds.items() for target in targets(path, text, macros)]
    owners = collections.defaultdict(set)
    for target in everything:
        if target["label"]:
            for attribute in ("hdrs", "textual_hdrs"):
                for header in target["owned"][attribute]:
                    owners[header].add(target["label"])
    found = []
    for target in everything:
        if target["deps"] is None:
            continue
        own = {path for paths in target["owned"].values() for path in paths}
        for path in sorted(own & sources.keys()):
            for line, header in includes(sources[path]):
                if header in own or not owners[header] or owners[header] & target["deps"]:
                    continue
                label = min(owners[header])
                found.append(
                    f"{path}:{line}: includes {header}, but its target in"
                    f" {target['build']}:{target['line']} does not depend on {label}: add it to deps"
                )
    return found


def breaches(plan, files):
    """Lines that say what breaks the plan.

    files  The text of each path.
    """
    sources = {path: text for path, text in files.items() if is_code(path)}
    builds = {path: text for path, text in files.items() if is_build_file(path)}
    own_builds = {path: text for path, text in builds.items() if not plan.is_outside(path)}
    found = check_rooms(plan, sources)
    found += check_floors(plan, sources)
    found += check_inside(plan, sources)
    for path, text in builds.items():
        found += check_build_lines(path, text)
    for path, text in sources.items():
        if path.endswith(".h"):
            found += check_classes(path, text)
    found += check_deps(sources, own_builds, {p: t for p, t in files.items() if p.endswith(".bzl")})
    return sorted(found)


def main():
    files = {}
    for path in sys.stdin.read().split("\n"):
        if is_code(path) or is_build_file(path) or path.endswith(".bzl"):
            with open(path, encoding="utf-8") as file:
                files[path] = file.read()
    found = breaches(Plan(FLOORS, TEST_ROOMS, OUTSIDE), files)
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
