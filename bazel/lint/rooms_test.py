"""Each check of the floor plan finds what it is for, and nothing else."""

import unittest

from rooms import Plan, breaches

PLAN = Plan(
    floors=[["ground"], ["hall", "hall/left", "hall/right"], ["attic", "hall/stairs"]],
    test_rooms=["hall/testing"],
    outside=["tools"],
)


class RoomsTest(unittest.TestCase):
    def found(self, files):
        """The breaches among files, given by their lines, beside headers of each room."""
        rooms = ["ground", "hall", "hall/left", "hall/right", "hall/testing", "attic"]
        tree = {f"{room}/door.h": "" for room in rooms}
        tree.update((path, "\n".join(lines) + "\n") for path, lines in files.items())
        return breaches(PLAN, tree)

    def including(self, path, header):
        return self.found({path: ["// A file.", f'#include "{header}"']})

    def test_includes_run_down(self):
        for path, header in [
            ("hall/x.h", "ground/door.h"),
            ("hall/left/x.cc", "hall/door.h"),
            ("attic/deep/x.h", "hall/left/door.h"),
            ("attic/x.cu", "attic/door.h"),
        ]:
            self.assertEqual(self.including(path, header), [])
        for path, header in [
            ("ground/x.h", "hall/door.h"),
            ("hall/left/x.cc", "attic/door.h"),
            ("ground/deep/x.cu", "attic/door.h"),
            ("ground/x_test.cc", "hall/door.h"),
        ]:
            found = self.including(path, header)
            self.assertEqual(len(found), 1, found)
            self.assertIn(f"{path}:2: includes {header}: ", found[0])
            self.assertIn("lies above", found[0])

    def test_headers_outside_of_the_tree_do_not_count(self):
        self.assertEqual(self.including("ground/x.h", "attic/made.pb.h"), [])
        self.assertEqual(self.including("ground/x.h", "grpcpp/server.h"), [])

    def test_rooms_of_one_floor_include_each_other_one_way(self):
        one_way = {
            "hall/left/a.h": ['#include "hall/right/door.h"'],
            "hall/left/b.h": ['#include "hall/right/door.h"'],
        }
        self.assertEqual(self.found(one_way), [])
        both_ways = {**one_way, "hall/right/c.h": ["", '#include "hall/left/a.h"']}
        found = self.found(both_ways)
        self.assertEqual(len(found), 1, found)
        self.assertIn("hall/right/c.h:2: includes hall/left/a.h: hall/left includes hall/right in turn", found[0])

    def test_longer_circles_on_one_floor_are_found(self):
        found = self.found(
            {
                "hall/a.h": ['#include "hall/left/door.h"'],
                "hall/b.h": ['#include "hall/left/door.h"'],
                "hall/left/a.h": ['#include "hall/right/door.h"'],
                "hall/left/b.h": ['#include "hall/right/door.h"'],
                "hall/right/a.h": ['#include "hall/door.h"'],
            }
        )
        self.assertEqual(len(found), 1, found)
        self.assertIn("hall/right/a.h:1: includes hall/door.h: ", found[0])

    def test_rooms_of_tests_are_for_tests_of_every_floor(self):
        for path in ["ground/x_test.cc", "hall/x_test.cu", "hall/testing/x.h"]:
            self.assertEqual(self.including(path, "hall/testing/door.h"), [])
        for path in ["ground/x.cc", "attic/x.cc"]:
            found = self.including(path, "hall/testing/door.h")
            self.assertEqual(len(found), 1, found)
            self.assertIn("only tests include it", found[0])
        self.assertEqual(self.including("hall/testing/x.h", "attic/door.h"), [])

    def test_one_concept_may_lie_on_a_floor_of_its_own(self):
        for path in ["hall/stairs.h", "hall/stairs.cc", "hall/stairs_test.cc"]:
            self.assertEqual(self.including(path, "attic/door.h"), [])
        for path in ["hall/stairs_x.h", "hall/stair.h"]:
            self.assertEqual(len(self.including(path, "attic/door.h")), 1)

    def test_every_source_lies_in_a_room(self):
        found = self.found({"cellar/x.cc": [""], "tools/x.cc": [""], "hall/other/x.cc": [""]})
        self.assertEqual(len(found), 1, found)
        self.assertIn("cellar/x.cc:1: lies in no room", found[0])

    def test_the_inside_of_a_room_is_its_own(self):
        inside = {"hall/left/internal/x.h": [""]}
        include = ['#include "hall/left/internal/x.h"']
        for path in ["hall/left/a.h", "hall/left/internal/a.cc", "hall/left/a_test.cc"]:
            self.assertEqual(self.found(inside | {path: include}), [])
        for path in ["hall/a.cc", "hall/right/a_test.cc", "attic/a.h"]:
            found = self.found(inside | {path: include})
            self.assertEqual(len(found), 1, found)
            self.assertIn("internal to hall/left:", found[0])

    def test_build_files_are_short(self):
        for path, limit in [("hall/BUILD.bazel", 550), ("rpc/agent/BUILD.bazel", 300)]:
            self.assertEqual(self.found({path: ["#"] * limit}), [])
            found = self.found({path: ["#"] * (limit + 1)})
            self.assertEqual(len(found), 1, found)
            self.assertIn(f"{path}:{limit + 1}: {limit + 1} lines", found[0])

    def test_classes_are_short(self):
        for head in [
            ["class Big {"],
            ["struct Big final : public Small {"],
            ["template <class T>", "class Big {"],
            ["class [[nodiscard]] Big", "    : public Small {"],
            ["class ABSL_LOCKABLE(x) Outer::Big {"],
        ]:
            inside = ["  int a;", "  // A word.", ""]
            self.assertEqual(self.found({"hall/x.h": head + inside * 150 + ["};"]}), [])
            found = self.found({"hall/x.h": ["", *head, *inside * 151, "};"]})
            self.assertEqual(len(found), 1, (head, found))
            self.assertIn("Big has 151 lines of declarations", found[0])
            self.assertEqual(self.found({"hall/x.cc": head + inside * 151 + ["};"]}), [])
        free = ["class Small;", "void F(class Small s) {", *["  f();"] * 200, "}", "struct A {", "};"]
        self.assertEqual(self.found({"hall/x.h": free}), [])

    def test_classes_within_a_class_count_by_themselves(self):
        inner = ["  struct Inner {", *["    int a;"] * 151, "  };"]
        found = self.found({"hall/x.h": ["class Outer {", *inner, "};"]})
        self.assertEqual(len(found), 2, found)

    def deps_found(self, target, **files):
        library = 'cc_library(name = "door", hdrs = ["door.h"])'
        build = {"ground/BUILD.bazel": [library], "hall/BUILD.bazel": [library, target]}
        sources = {"hall/x.cc": ['#include "ground/door.h"', '#include "hall/door.h"', "#include <x.h>"]}
        return self.found(build | sources | files)

    def test_deps_are_direct(self):
        both = '":door", "//ground:door"'
        self.assertEqual(self.deps_found(f'cc_test(name = "x", srcs = ["x.cc"], deps = [{both}])'), [])
        short = 'cc_test(name = "x", srcs = [":x.cc"], deps = ["//hall:door"])'
        found = self.deps_found(short)
        self.assertEqual(len(found), 1, found)
        self.assertIn("hall/x.cc:1: includes ground/door.h", found[0])
        self.assertIn("hall/BUILD.bazel:2 does not depend on //ground:door", found[0])

    def test_deps_by_select_count(self):
        target = 'cc_test(name = "x", srcs = ["x.cc"], deps = [":door"] + select({"//a:b": ["//ground:door"]}))'
        self.assertEqual(self.deps_found(target), [])

    def test_deps_of_a_macro_count(self):
        target = 'my_test(name = "x", srcs = ["x.cc"], deps = ["//hall:door"])'
        self.assertEqual(len(self.deps_found(target)), 1)
        macro = ["def my_test(name, deps):", '    cc_test(name = name, deps = deps + ["//ground:door"])']
        self.assertEqual(self.deps_found(target, **{"bazel/my_test.bzl": macro}), [])

    def test_deps_that_are_not_literal_are_left_out(self):
        target = '[cc_test(name = n, srcs = ["x.cc"], deps = [":door"] + more) for n, more in ALL]'
        self.assertEqual(self.deps_found(target), [])


if __name__ == "__main__":
    unittest.main()
