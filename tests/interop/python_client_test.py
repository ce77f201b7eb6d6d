"""Tests of a worker with a Python client on stock stubs."""
import concurrent.futures
import os
import shutil
import subprocess
import tempfile
import unittest

import grpc

from hawser_client import CallError, Credentials, Directory, Tensor, Worker

JOB = "interop"
ADD = ("interop.Add", "Tensor(Tensor, Tensor)")
REPEAT = ("interop.Repeat", "list<string>(list<string>, int64)")
FAIL = ("interop.Fail", "void(string)")
WAIT = ("interop.Wait", "void()")
NUM_GIVEN_UP = ("interop.NumGivenUp", "int64()")


class ServedWorker:
    """A process that runs a worker named "served", and the address of its store."""

    def __init__(self, **environment):
        self._process = subprocess.Popen(
            ["./served_worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **environment})
        self.store = self._process.stdout.readline().strip()

    def end(self):
        self._process.communicate("\n", timeout=30)
        assert self._process.returncode == 0, self._process.returncode


class PythonClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.served = ServedWorker()
        cls.record = Directory(cls.served.store, JOB).find("served")

    @classmethod
    def tearDownClass(cls):
        cls.served.end()

    def setUp(self):
        self.worker = Worker(self.record, JOB)

    def fails(self, code, *arguments, **options):
        with self.assertRaises(CallError) as caught:
            self.worker.call(*arguments, **options)
        self.assertEqual(caught.exception.code, code, caught.exception.message)
        return caught.exception

    def test_tensors_round_trip(self):
        total = self.worker.call(*ADD, Tensor([2, 3], [1, 2, 3, 4, 5, 6]), Tensor([3], [10, 20, 30]))
        self.assertEqual(total, Tensor([2, 3], [11, 22, 33, 14, 25, 36]))

    def test_large_tensor_keeps_every_element(self):
        elements = [float(i % 1000) for i in range(1 << 20)]
        total = self.worker.call(*ADD, Tensor([1 << 20], elements), Tensor([1], [1]))
        self.assertEqual(total.elements, [x + 1 for x in elements])

    def test_lists_and_numbers(self):
        self.assertEqual(self.worker.call(*REPEAT, ["a", "b"], 2), ["a", "b", "a", "b"])
        self.assertEqual(self.worker.call(*REPEAT, ["a"], 0), [])

    def test_concurrent_calls(self):
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
        self.fails(grpc.StatusCode.INTERNAL, *ADD, Tensor([4], [1.0]), Tensor([1], [1.0]))

    def test_deadline_reaches_the_function(self):
        before = self.worker.call(*NUM_GIVEN_UP)
        # A call that arrives after its deadline does not run, so this retries.
        while self.worker.call(*NUM_GIVEN_UP) == before:
            self.fails(grpc.StatusCode.DEADLINE_EXCEEDED, *WAIT, timeout=0.2)

    def test_another_incarnation_is_rejected(self):
        self.worker.record.incarnation ^= 1
        try:
            error = self.fails(grpc.StatusCode.FAILED_PRECONDITION, *NUM_GIVEN_UP)
        finally:
            self.worker.record.incarnation ^= 1
        self.assertIn("served", error.message)

    def test_another_job_is_rejected(self):
        self.worker = Worker(self.record, "another")
        self.fails(grpc.StatusCode.FAILED_PRECONDITION, *NUM_GIVEN_UP)


class AuthenticationTest(unittest.TestCase):
    """Tests that clients without the job's credentials are rejected."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp()
        cls.certs = f"{cls.directory}/certs"
        cls.hawser("init", cls.certs, "--job", JOB)
        cls.hawser("issue", cls.certs, "served", "python", "another")
        with open(f"{cls.certs}/token", encoding="ascii") as file:
            cls.token = file.read().strip()

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.directory)

    @staticmethod
    def hawser(*arguments):
        subprocess.run(["../../cli/hawser", "certs", *arguments], check=True,
                       stdout=subprocess.DEVNULL)

    def serve(self, tls):
        environment = {"HAWSER_TOKEN_FILE": f"{self.certs}/token"}
        if tls:
            environment["HAWSER_TLS_CERT"] = f"{self.certs}/served/worker.crt"
            environment["HAWSER_TLS_KEY"] = f"{self.certs}/served/worker.key"
            environment["HAWSER_TLS_CA"] = f"{self.certs}/served/ca.crt"
        served = ServedWorker(**environment)
        self.addCleanup(served.end)
        return served.store

    def credentials(self, name, token=None):
        return Credentials(token, f"{self.certs}/{name}", JOB)

    def refused(self, code, function, *arguments):
        with self.assertRaises((CallError, grpc.RpcError)) as caught:
            function(*arguments)
        error = caught.exception
        self.assertEqual(error.code() if callable(error.code) else error.code, code, error)
        return error.message if isinstance(error, CallError) else error.details()

    def test_token_on_an_open_port(self):
        store = self.serve(tls=False)
        good = Credentials(self.token)
        record = Directory(store, JOB, good).find("served")
        self.assertEqual(Worker(record, JOB, good).call(*NUM_GIVEN_UP), 0)
        for outsider, reason in ((Credentials(), "no token"), (Credentials("0" * 64), "not the job's")):
            # The store and the worker both reject the client.
            self.assertIn(reason, self.refused(
                grpc.StatusCode.UNAUTHENTICATED, Directory, store, JOB, outsider))
            self.assertIn(reason, self.refused(
                grpc.StatusCode.UNAUTHENTICATED, Worker(record, JOB, outsider).call, *NUM_GIVEN_UP))

    def test_certificate_and_token_are_accepted(self):
        store = self.serve(tls=True)
        python = self.credentials("python", self.token)
        record = Directory(store, JOB, python).find("served")
        worker = Worker(record, JOB, python)
        total = worker.call(*ADD, Tensor([2], [1, 2]), Tensor([1], [1]))
        self.assertEqual(total, Tensor([2], [2, 3]))

    def test_client_without_certificate_cannot_connect(self):
        store = self.serve(tls=True)
        python = self.credentials("python", self.token)
        record = Directory(store, JOB, python).find("served")
        for outsider in (Credentials(), Credentials(self.token)):
            self.refused(grpc.StatusCode.UNAVAILABLE, Directory, store, JOB, outsider)
            self.refused(
                grpc.StatusCode.UNAVAILABLE, Worker(record, JOB, outsider).call, *NUM_GIVEN_UP)

    def test_certificate_without_token_is_rejected(self):
        store = self.serve(tls=True)
        self.assertIn("no token", self.refused(
            grpc.StatusCode.UNAUTHENTICATED, Directory, store, JOB, self.credentials("python")))

    def test_name_of_another_worker_is_rejected(self):
        store = self.serve(tls=True)
        another = self.credentials("another", self.token)
        record = Directory(store, JOB, another).find("served")
        message = self.refused(
            grpc.StatusCode.UNAUTHENTICATED, Worker(record, JOB, another).call, *NUM_GIVEN_UP)
        self.assertIn("hawser://interop/python", message)
        self.assertIn("hawser://interop/another", message)

    def test_server_must_be_the_intended_worker(self):
        store = self.serve(tls=True)
        python = self.credentials("python", self.token)
        record = Directory(store, JOB, python).find("served")
        record.name = "another"
        self.refused(grpc.StatusCode.UNAVAILABLE, Worker(record, JOB, python).call, *NUM_GIVEN_UP)


if __name__ == "__main__":
    unittest.main()
