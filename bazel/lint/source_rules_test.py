"""Each rule finds what it is for, and nothing else."""

import unittest

from source_rules import violations


class SourceRulesTest(unittest.TestCase):
    def found(self, path, *lines):
        return violations(path, "\n".join(lines))

    def test_wire_code_does_not_end_the_process(self):
        for line in [
            "  assert(size > 0);",
            "  abort();",
            "  std::abort();",
            "  exit(1);",
            "  CHECK(ok);",
            "  CHECK_EQ(a, b);",
            "  DCHECK(ok);",
            "  LOG(FATAL) << 1;",
        ]:
            self.assertEqual(len(self.found("rpc/x.cc", line)), 1, line)
            self.assertEqual(self.found("nn/x.cc", line), [], line)
            self.assertEqual(self.found("rpc/x_test.cc", line), [], line)

        self.assertEqual(self.found("rpc/x.cc", "app.exit(error);", "p->abort();"), [])

    def test_wire_code_does_not_throw(self):
        for line in ["std::stoi(text)", "map.at(key)", "throw Error();"]:
            self.assertEqual(len(self.found("store/x.cc", line)), 1, line)
        self.assertEqual(self.found("store/x.cc", "throw;", "catch_at(1)"), [])

    def test_own_checks_are_counted(self):
        check = "HAWSER_CHECK(mine);"
        self.assertEqual(len(self.found("rpc/new.cc", check)), 1)
        self.assertEqual(self.found("rpc/wire/decoder.cc", check, check), [])
        self.assertEqual(len(self.found("rpc/wire/decoder.cc", check, check, check)), 1)
        self.assertEqual(self.found("nn/x.cc", check), [])

    def test_zerocopy_is_never_set(self):
        line = "SetInt(GRPC_ARG_TCP_TX_ZEROCOPY_ENABLED, 1);"
        self.assertEqual(len(self.found("benchmarks/x.cc", line)), 1)

    def test_public_headers_use_standard_types(self):
        line = "void F(absl::string_view text);"
        self.assertEqual(len(self.found("rpc/x.h", line)), 1)
        self.assertEqual(self.found("rpc/x.cc", line), [])
        self.assertEqual(self.found("rpc/internal/x.h", line), [])

    def test_locks_are_seen_by_thread_sanitizer(self):
        self.assertEqual(len(self.found("ps/x.h", "absl::Mutex mutex_;")), 1)
        self.assertEqual(self.found("ps/x.h", "async::Mutex mutex_;"), [])

    def test_headers_open_with_a_noun_phrase(self):
        for word in ["What", "How", "Who", "Whose", "When", "Where", "Which", "Whether"]:
            for path in ["nn/x.h", "rpc/x_test_fixture.h"]:
                found = self.found(path, "#ifndef X", f"  // {word} it is.", "#endif")
                self.assertEqual(len(found), 1, found)
                self.assertIn(f"{path}:2: {word}: ", found[0])
            self.assertEqual(self.found("nn/x.cc", f"// {word} it is."), [])
            self.assertEqual(self.found("nn/x.h", "// A thing.", "", f"// {word} it is."), [])
        self.assertEqual(self.found("nn/x.h", "// Whatever it is.", "#endif"), [])
        self.assertEqual(self.found("nn/x.h", "#ifndef X", "#endif"), [])
        self.assertEqual(len(self.found("nn/x.h", "//", "// What it is.")), 1)

    def test_comments_and_strings_do_not_count(self):
        self.assertEqual(
            self.found("rpc/x.cc", "// absl::Mutex, assert(x)", '"abort()"', "/* throw", "Error */"),
            [],
        )
        self.assertEqual(self.found("rpc/x.cc", 'R"(a "', "abort();", ')"'), [])
        self.assertEqual(len(self.found("rpc/x.cc", "if (c == '\"') abort();", '"')), 1)
        self.assertEqual(len(self.found("rpc/x.cc", "x = 1'000; abort(); y = 1'000;")), 1)
        self.assertIn("rpc/x.cc:3:", self.found("rpc/x.cc", "/*", "*/", "abort();")[0])


if __name__ == "__main__":
    unittest.main()
