"""What a Python program on stock stubs sees of a worker."""
import concurrent.futures
import subprocess
import unittest

import grpc

from hawser_client import CallError, Directory, Tensor, Worker

JOB = "interop"
ADD = ("interop.Add", "Tensor(Tensor, Tensor)")
REPEAT = ("interop.Repeat", "list<string>(list<string>, int64)")
FAIL = ("interop.Fail", "void(string)")
WAIT = ("interop.Wait", "void()")
NUM_GIVEN_UP = ("interop.NumGivenUp", "int64()")


class PythonClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.process = subprocess.Popen(
            ["./served_worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        store = cls.process.stdout.readline().strip()
        cls.record = Directory(store, JOB).find("served")

    @classmethod
    def tearDownClass(cls):
        cls.process.communicate("\n", timeout=30)
        assert cls.process.returncode == 0, cls.process.returncode

    def setUp(self):
        self.worker = Worker(self.record, JOB)

    def fails(self, code, *arguments, **options):
        with self.assertRaises(CallError) as caught:
            self.worker.call(*arguments, **options)
        self.assertEqual(caught.exception.code, code, caught.exception.message)
        return caught.exception

    def test_tensors_there_and_back(self):
        total = self.worker.call(*ADD, Tensor([2, 3], [1, 2, 3, 4, 5, 6]), Tensor([3], [10, 20, 30]))
        self.assertEqual(total, Tensor([2, 3], [11, 22, 33, 14, 25, 36]))

    def test_large_tensor_keeps_every_element(self):
        elements = [float(i % 1000) for i in range(1 << 20)]
        total = self.worker.call(*ADD, Tensor([1 << 20], elements), Tensor([1], [1]))
        self.assertEqual(total.elements, [x + 1 for x in elements])

    def test_lists_and_numbers(self):
        self.assertEqual(self.worker.call(*REPEAT, ["a", "b"], 2), ["a", "b", "a", "b"])
        self.assertEqual(self.worker.call(*REPEAT, ["a"], 0), [])

    def test_calls_side_by_side(self):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            results = pool.map(lambda i: self.worker.call(*REPEAT, [str(i)], 1), range(200))
            self.assertEqual(list(results), [[str(i)] for i in range(200)])

    def test_error_of_the_function(self):
        error = self.fails(grpc.StatusCode.DATA_LOSS, *FAIL, "spilt")
        self.assertIn("spilt", error.message)
        self.assertEqual(error.detail.worker, "served")
        self.assertEqual(error.detail.incarnation, self.record.incarnation)
        self.assertFalse(error.detail.maybe_applied)

    def test_unknown_function(self):
        error = self.fails(grpc.StatusCode.UNIMPLEMENTED, "interop.No", "void()")
        self.assertIn("interop.No", error.message)
        self.assertEqual(error.detail.worker, "served")

    def test_other_signature_names_both(self):
        error = self.fails(grpc.StatusCode.INVALID_ARGUMENT, FAIL[0], "void(int64)", 1)
        self.assertIn("void(int64)", error.message)
        self.assertIn("void(string)", error.message)

    def test_argument_of_another_type(self):
        self.fails(grpc.StatusCode.INVALID_ARGUMENT, *FAIL, 7)

    def test_tensor_bytes_that_do_not_match_the_header(self):
        self.fails(grpc.StatusCode.INVALID_ARGUMENT, *ADD, Tensor([4], [1.0]), Tensor([1], [1.0]))

    def test_deadline_reaches_the_function(self):
        before = self.worker.call(*NUM_GIVEN_UP)
        self.fails(grpc.StatusCode.DEADLINE_EXCEEDED, *WAIT, timeout=0.2)
        while self.worker.call(*NUM_GIVEN_UP) == before:
            pass

    def test_another_incarnation_is_refused(self):
        self.worker.record.incarnation ^= 1
        try:
            error = self.fails(grpc.StatusCode.FAILED_PRECONDITION, *NUM_GIVEN_UP)
        finally:
            self.worker.record.incarnation ^= 1
        self.assertIn("served", error.message)

    def test_another_job_is_refused(self):
        self.worker = Worker(self.record, "another")
        self.fails(grpc.StatusCode.FAILED_PRECONDITION, *NUM_GIVEN_UP)


if __name__ == "__main__":
    unittest.main()
