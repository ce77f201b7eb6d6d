"""References that lead somewhere are left alone, and those that do not are found."""

import unittest

from documents import breaches

TREE = {
    "README.md": "",
    "docs/a.md": "",
    "x/y.h": "",
    "x/BUILD.bazel": 'cc_test(\n    name = "y_test",\n)\nsimulation_test(\n    name = "sea",\n)\n',
    "x/y_test.cc": "TEST(YTest, IsThere) {}\nTEST_P(\n    YTest, IsLong) {}\nTEST_F(ZTest, IsOther) {}",
    "x/z.py": "class ClientTest(Base):\n",
}


class DocumentsTest(unittest.TestCase):
    def found(self, *lines, path="docs/b.md"):
        return breaches({**TREE, path: "\n".join(lines)})

    def test_links(self):
        for link in ["a.md", "../README.md", "a.md#part", "https://example.org/a.md"]:
            self.assertEqual(self.found(f"See [a]({link})."), [])
        self.assertEqual(self.found("[a](docs/a.md)", path="CHANGELOG.md"), [])
        for link in ["none.md", "docs/a.md", "../none.md#part"]:
            found = self.found("", f"See [a]({link}).")
            self.assertEqual(len(found), 1, found)
            self.assertIn("docs/b.md:2: the file ", found[0])

    def test_files(self):
        self.assertEqual(self.found("`x/y.h`, `y.h`, `x/none`, x/none.h"), [])
        self.assertIn("the file x/none.h does", self.found("`x/y.h`, `x/none.h`")[0])

    def test_targets(self):
        self.assertEqual(self.found("`//x:y_test`, `//x:sea_test`"), [])
        for target in ["//x:none_test", "//none:y_test", "//x:y"]:
            self.assertIn(f"the target {target} does", self.found(f"`{target}`")[0])

    def test_tests(self):
        self.assertEqual(self.found("`YTest.IsThere`, `.IsLong`; `YTest`: `.IsThere`; `ClientTest`"), [])
        self.assertIn("b.md:2: the test YTest.IsOther does", self.found("`YTest`,", "`.IsOther`")[0])
        self.assertIn("the test NoTest does", self.found("`NoTest`")[0])
        self.assertIn("the test YTest.Gone does", self.found("`YTest.Gone`")[0])

    def test_only_documents_are_read(self):
        self.assertEqual(self.found("`x/none.h`", path="x/none.cc"), [])


if __name__ == "__main__":
    unittest.main()
