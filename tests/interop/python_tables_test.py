"""Tests of a server of tables with the Python client."""
import os
import subprocess
import unittest

import numpy

from hawser_client import CallError, Directory
from hawser_tables import KeyRange, Table, hash_keys, shards_of
from python_client_test import JOB, ServedWorker

HAWSER = "../../cli/hawser"
SNAPSHOTS = os.path.join(os.environ["TEST_TMPDIR"], "snapshots")


class PythonTablesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.served = ServedWorker()
        cls.servers = [
            subprocess.Popen(
                [HAWSER, "ps", f"--name=ps{i}", f"--rank={i + 5}", f"--job={JOB}",
                 f"--init=tcp://{cls.served.store}", f"--snapshot-dir={SNAPSHOTS}"])
            for i in range(3)
        ]
        cls.directory = Directory(cls.served.store, JOB)

    @classmethod
    def tearDownClass(cls):
        for server in cls.servers:
            server.terminate()
        for server in cls.servers:
            assert server.wait(timeout=30) == 0
        cls.served.end()

    def hawser(self, *arguments):
        subprocess.run([HAWSER, "ps", *arguments, f"--job={JOB}", f"--init=tcp://{self.served.store}"],
                       check=True, stdout=subprocess.DEVNULL)

    def create(self, name, **options):
        return Table.create(self.directory, name, servers=["ps0", "ps1", "ps2"], **options)

    def test_hashes_and_shards(self):
        self.assertEqual(int(hash_keys(numpy.array([1], numpy.uint64))[0]), 0x5692161D100B05E5)
        hashes = hash_keys(numpy.arange(1000, dtype=numpy.uint64))
        for shards in (1, 7, 1024):
            expected = [int(h) * shards >> 64 for h in hashes]
            self.assertEqual(shards_of(hashes, shards).tolist(), expected)

    def test_pull_gives_initial_rows_in_the_shape_of_the_keys(self):
        table = self.create("initial", width=3, uniform=(0, 1), seed=42)
        rows = table.pull(numpy.array([[7, 8], [9, 7]]))
        self.assertEqual(rows.shape, (2, 2, 3))
        numpy.testing.assert_array_equal(rows[0, 0], rows[1, 1])
        # The numbers of InitialRowTest.
        numpy.testing.assert_allclose(rows[0, 0], [0.9886913, 0.77564664, 0.10626367], rtol=1e-6)
        self.assertEqual(table.num_rows(), 3)

    def test_missing_rows_can_stay_missing(self):
        table = self.create("missing", width=1)
        table.pull([1, 2, 3], create_missing=False)
        self.assertEqual(table.num_rows(), 0)

    def test_push_updates_rows_on_all_servers(self):
        table = self.create("push", width=2, rule="SGD", options={"lr": 1})
        keys = numpy.arange(500) * 1000 - 7
        table.push(keys, numpy.ones((500, 2)))
        # A repeated key is updated once, by the sum.
        table.push([-7, -7], [[1, 2], [3, 4]], learning_rate=0.5)
        expected = -numpy.ones((500, 2))
        expected[0] -= [2, 3]
        numpy.testing.assert_array_equal(table.pull(keys), expected)
        other = Table.open(self.directory, "push")
        self.assertEqual(other.description.width, 2)
        other.push(keys, numpy.ones((500, 2)))
        numpy.testing.assert_array_equal(table.pull(keys), expected - 1)

    def test_rates_follow_the_schedule_and_the_key_ranges(self):
        table = self.create(
            "rates", width=1, rule="SGD", options={"lr": 1},
            schedule=[(0, "LinearLR", {"start_factor": 0.5, "total_steps": 2}),
                      (2, "StepLR", {"step_size": 1, "gamma": 0.25})],
            key_ranges=[KeyRange(10, 19, options={"lr": 8}),
                        KeyRange(2**64 - 1, 2**64 - 1, schedule=[], uniform=(3, 3))])
        keys, gradients = [9, 10, -1], [[-1], [-1], [-1]]
        table.push(keys, gradients)
        numpy.testing.assert_array_equal(table.pull(keys)[:, 0], [0.5, 4, 4])
        table.push(keys, gradients, step=3)
        numpy.testing.assert_array_equal(table.pull(keys)[:, 0], [0.75, 6, 5])
        table.push(keys, gradients, learning_rate=4, step=2)
        numpy.testing.assert_array_equal(table.pull(keys)[:, 0], [4.75, 10, 9])
        with self.assertRaisesRegex(CallError, r"key range \[5, 6\]: rule: SGD does not have"):
            self.create("wrong", width=1, rule="SGD", options={"lr": 1},
                        key_ranges=[KeyRange(5, 6, options={"eps": 8})])

    def test_pull_with_a_read_function(self):
        table = Table.create(self.directory, "scores", width=2, servers=["served"], rule="SGD",
                             options={"lr": 1})
        table.push([1, 2], [[-1, -2], [-3, -4]])
        scores = table.pull([[2, 1], [3, 2]], function="interop.Dot",
                            arguments=[[1, 10], [1, 0], [0, 1]])
        self.assertEqual(scores.shape, (2, 2, 3))
        numpy.testing.assert_array_equal(scores[0], [[43, 3, 4], [21, 1, 2]])
        numpy.testing.assert_array_equal(scores[1], [[0, 0, 0], [43, 3, 4]])
        self.assertEqual(table.pull([], function="interop.Dot", arguments=[[1, 1]]).shape, (0, 0))
        with self.assertRaisesRegex(CallError, "INVALID_ARGUMENT.*not as wide as a row"):
            table.pull([1], function="interop.Dot", arguments=[[1]])
        with self.assertRaisesRegex(CallError, "INVALID_ARGUMENT.*read function \"dot\""):
            table.pull([1], function="dot")

    def test_errors(self):
        table = self.create("errors", width=2)
        with self.assertRaisesRegex(ValueError, "gradients must have the shape"):
            table.push([1], [[1, 2, 3]])
        with self.assertRaisesRegex(CallError, "ALREADY_EXISTS.*another description"):
            self.create("errors", width=3)
        with self.assertRaisesRegex(ValueError, "weights must have the shape"):
            table.assign([1], [[1, 2, 3]])
        with self.assertRaisesRegex(ValueError, "is repeated"):
            table.assign([1, 1], [[1, 2], [1, 2]])
        with self.assertRaisesRegex(KeyError, "no table 'nothing'"):
            Table.open(self.directory, "nothing")
        with self.assertRaisesRegex(ValueError, "exists on other servers"):
            Table.create(self.directory, "errors", width=2, servers=["ps1"])

    def test_push_pull_returns_the_rows_after_the_update(self):
        table = self.create("push_pull", width=2, rule="SGD", options={"lr": 1})
        keys = numpy.array([[5, 6], [7, 5]])
        rows = table.push_pull(keys, numpy.ones((2, 2, 2)))
        numpy.testing.assert_array_equal(rows, [[[-2, -2], [-1, -1]], [[-1, -1], [-2, -2]]])
        numpy.testing.assert_array_equal(table.pull(keys), rows)

    def test_assign_replaces_rows(self):
        table = self.create("assign", width=2, rule="SGD", options={"lr": 1})
        keys = numpy.arange(100)
        weights = numpy.arange(200.0).reshape(100, 2)
        table.assign(keys, weights)
        numpy.testing.assert_array_equal(table.pull(keys), weights)
        table.assign([99, 100], [[1, 2], [3, 4]], keep_existing=True)
        numpy.testing.assert_array_equal(table.pull([99, 100]), [weights[99], [3, 4]])

    def test_options_of_the_table(self):
        table = self.create("retained", width=1, rule="SGD", options={"lr": 1},
                            retention={"admission_pushes": 2})
        for expected in (0, -1):
            table.push([1], [[1]])
            self.assertEqual(table.pull([1]).tolist(), [[expected]])
        with self.assertRaisesRegex(CallError, "FAILED_PRECONDITION.*disk"):
            self.create("on_disk", width=1, rows_in_memory=1000)

    def test_only_members_push_to_a_table_with_a_clock(self):
        for name, consistency in (("bounded", 2), ("synchronous", "synchronous")):
            table = self.create(name, width=1, consistency=consistency)
            table.assign([1, 2], [[5], [6]])
            self.assertEqual(table.pull([2]).tolist(), [[6]])
            with self.assertRaisesRegex(CallError, "FAILED_PRECONDITION.*has not joined"):
                table.push([1], [[1]])

    def test_a_table_is_followed_to_other_servers(self):
        table = self.create("moved", width=1, rule="SGD", options={"lr": 1})
        keys = numpy.arange(100)
        table.push(keys, -numpy.ones((100, 1)))
        away = Table.open(self.directory, "moved")
        self.hawser("snapshot", "moved", "one")
        table.push(keys, -numpy.ones((100, 1)))
        self.hawser("restore", "moved", "one", "--servers=ps1")
        table.push(keys, -numpy.ones((100, 1)))
        self.assertEqual(table.servers, ["ps1"])
        self.hawser("restore", "moved", "one", "--servers=ps2,ps0")
        numpy.testing.assert_array_equal(table.push_pull(keys, -numpy.ones((100, 1))), numpy.full((100, 1), 2))
        # Away during both moves.
        numpy.testing.assert_array_equal(away.pull(keys), numpy.full((100, 1), 2))
        self.assertEqual(away.servers, ["ps2", "ps0"])
        self.assertEqual(away.num_rows(), 100)

    def test_a_push_needs_an_incarnation(self):
        table = self.create("anonymous", width=1)
        table._incarnation = 0
        with self.assertRaisesRegex(CallError, "INVALID_ARGUMENT.*incarnation of its sender"):
            table.push([1], [[1]])


if __name__ == "__main__":
    unittest.main()
