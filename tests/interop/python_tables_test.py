"""Tests of a server of tables with the Python client."""
import subprocess
import unittest

import numpy

from hawser_client import CallError, Directory
from hawser_tables import KeyRange, Table, hash_keys, shards_of
from python_client_test import JOB, ServedWorker


class PythonTablesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.served = ServedWorker()
        cls.servers = [
            subprocess.Popen(
                ["../../cli/hawser", "ps", f"--name=ps{i}", f"--rank={i + 5}", f"--job={JOB}",
                 f"--init=tcp://{cls.served.store}"])
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
        other = Table.open(self.directory, "push", ["ps0", "ps1", "ps2"])
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
        with self.assertRaisesRegex(CallError, "NOT_FOUND.*no table"):
            Table.open(self.directory, "nothing", ["ps0"])

    def test_a_push_needs_an_incarnation(self):
        table = self.create("anonymous", width=1)
        table._incarnation = 0
        with self.assertRaisesRegex(CallError, "INVALID_ARGUMENT.*incarnation of its sender"):
            table.push([1], [[1]])


if __name__ == "__main__":
    unittest.main()
