"""Rules for sources that neither the compiler nor clang-tidy knows.

    python3 bazel/lint/source_rules.py FILE...

Prints one line per violation and ends with 1 if there is one.
"""

import re
import sys

# Folders whose code handles bytes from peers.
WIRE = r"(rpc|ipc|fs|store|rref|dist_autograd|dist_optim|net|cli)/|tensor/wire_codec\."
TEST = r"_test\.|/testdata/|/testing/|_test_|peer_process"

# Checks of our own invariants in these folders, by file. Before raising a number: can bytes from a
# peer make the new one fail? Then it has to be an absl::Status.
OWN_CHECKS = {
    "ipc/range_allocator.cc": 3,
    "rpc/wire/decoder.cc": 2,
    "rpc/wire/encoder.cc": 4,
    "rpc/grpc/server_call.cc": 2,
    "rpc/inproc/network.cc": 2,
    "rpc/wire/message_encoding.cc": 1,
    "rpc/link/link_server.cc": 2,
    "rref/user_table.cc": 3,
}

# Where, what must not be there, and why.
RULES = [
    (
        WIRE,
        r"(?<![\w.>])(assert|abort|_?exit|terminate)\s*\(|(?<!HAWSER_)\bD?CHECK(_\w+)?\s*\(|LOG\(FATAL\)",
        "bytes from a peer must not end the process: return an absl::Status",
    ),
    (
        WIRE,
        r"\bstd::sto(i|l|ll|ul|ull|f|d|ld)\b|\.at\(|\bthrow\s+\w",
        "this throws: use absl::SimpleAtoi, find(), or an absl::Status",
    ),
    (
        r"",
        r"TCP_TX_ZEROCOPY|tcp_tx_zerocopy",
        "gRPC 1.51 corrupts what it sends with it (CVE-2024-11407)",
    ),
    (
        r"(?!.*/internal/)(?!tensor/backend/cuda/)(?!net/auth/pem\.)(?!rpc/agent/agent_impl\.).*\.h$",
        r"\babsl::(string_view|optional|variant|any)\b",
        "not the types of std with every Abseil: public headers use std's",
    ),
    (
        r"",
        r"\babsl::(Mutex|CondVar|MutexLock|ReaderMutexLock|WriterMutexLock)\b",
        "ThreadSanitizer does not see a system library's locks: use async::Mutex",
    ),
]

# Words with which a clause begins that stands where a noun belongs.
CLAUSE = r"(What|How|Who|Whose|Whom|When|Where|Which|Whether)\b"


def without_comments(text):
    """The text with comments and literals blanked out, lines kept."""
    pattern = (
        r"//[^\n]*|/\*.*?\*/"
        r'|R"([^(\s]*)\(.*?\)\1"'
        r'|"(?:\\.|[^"\\\n])*"'
        r"|'(?:\\.|[^'\\\n])'"
    )
    return re.sub(pattern, lambda match: re.sub(r"[^\n]", " ", match.group()), text, flags=re.S)


def opening_violations(path, text):
    """The line of a header's first comment that does not open with a noun phrase."""
    comment = re.search(r"^[ \t]*//[ \t]*(?=\S)", text, flags=re.M)
    opening = re.match(CLAUSE, text[comment.end() :]) if comment else None
    if not path.endswith(".h") or not opening:
        return []
    line = text.count("\n", 0, comment.start()) + 1
    why = "a header's first comment opens with a noun phrase that names what the header holds"
    return [f"{path}:{line}: {opening.group()}: {why}"]


def violations(path, text):
    """Lines that say what breaks which rule."""
    return opening_violations(path, text) + code_violations(path, text)


def code_violations(path, text):
    """Violations of the rules for code, which tests need not keep."""
    if re.search(TEST, path):
        return []
    text = without_comments(text)
    found = []
    for where, what, why in RULES:
        if not re.match(where, path):
            continue
        for match in re.finditer(what, text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{path}:{line}: {match.group().strip()}: {why}")
    checks = len(re.findall(r"\bHAWSER_CHECK\s*\(", text))
    if re.match(WIRE, path) and checks > OWN_CHECKS.get(path, 0):
        found.append(
            f"{path}: {checks} HAWSER_CHECK, {OWN_CHECKS.get(path, 0)} known: can bytes from a peer"
            " make one fail? If not, raise the number in bazel/lint/source_rules.py"
        )
    return found


def main(paths):
    found = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            found += violations(path, file.read())
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
