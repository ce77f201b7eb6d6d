"""Tables of Hawser's parameter server in Python, with numpy, based on generated stubs only.

proto/ps.proto and docs/ps.md describe the protocol completely.

    directory = Directory("127.0.0.1:29500", job="default")
    table = Table.create(directory, "users", width=16, servers=["ps0", "ps1"])
    rows = table.pull(keys)                # float32 [keys..., 16]
    table.push(keys, gradients)            # updates the rows by the table's rule
"""
import itertools
import secrets

import grpc
import numpy

from hawser_client import CallError, Credentials
from proto import ps_pb2, ps_pb2_grpc, table_pb2, tensor_pb2

_DTYPES = {"float32": tensor_pb2.DTYPE_F32, "int64": tensor_pb2.DTYPE_I64}
_RETRIED = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
_ATTEMPTS = 5


def hash_keys(keys):
    """The hash that determines the shard of each key: SplitMix64's finalizer. uint64 -> uint64."""
    with numpy.errstate(over="ignore"):
        hashes = (keys ^ (keys >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        hashes = (hashes ^ (hashes >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        return hashes ^ (hashes >> numpy.uint64(31))


def shards_of(hashes, num_shards):
    """floor(hash * num_shards / 2^64), for fewer than 2^31 shards."""
    shards = numpy.uint64(num_shards)
    low = (hashes & numpy.uint64(0xFFFFFFFF)) * shards >> numpy.uint64(32)
    return ((hashes >> numpy.uint64(32)) * shards + low) >> numpy.uint64(32)


class KeyRange:
    """Options of the rows whose keys, without sign, are from `first` to `last`; None: the table's."""

    def __init__(self, first, last, options=None, schedule=None, uniform=None):
        """options: of the table's rule; those that are not named are the table's."""
        self._bounds = first, last
        self._options = options
        self._schedule = schedule
        self._uniform = uniform

    def write(self, message, rule):
        """Writes the range to a TableKeyRange. rule: the name of the table's rule."""
        message.first, message.last = self._bounds
        if self._options is not None:
            message.rule.name = rule
            message.rule.options.update(self._options)
        if self._schedule is not None:
            message.schedule.SetInParent()
            _set_schedule(message.schedule, self._schedule)
        if self._uniform is not None:
            _set_uniform(message.initializer, self._uniform)


class Table:
    """A table on one or several servers. Not thread-safe."""

    def __init__(self, description, workers, job, credentials=Credentials(), source="python"):
        """workers: the WorkerRecords of the servers, in the order in which the table was created."""
        self.description = description
        self._workers = workers
        self._job = job
        self._source = source
        # Pushes are recognised by this number and their own.
        self._incarnation = secrets.randbits(63) | 1
        self._sequence = itertools.count(1)
        self._stubs = [
            ps_pb2_grpc.TableServiceStub(
                credentials.channel(
                    worker.address, worker.name,
                    [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]))
            for worker in workers
        ]

    @classmethod
    def create(cls, directory, name, width, servers, rule="RowWiseAdagrad", options=None,
               uniform=(0.0, 0.0), seed=0, num_shards=1024, credentials=Credentials(),
               source="python", schedule=(), key_ranges=()):
        """Creates the table, unless it exists.

        uniform: the range of initial weights.
        schedule: phases of the learning rate, each (first step, name, options), such as
            [(0, "LinearLR", {"total_steps": 1000}), (1000, "CosineAnnealingLR", {"period": 10**6})].
        key_ranges: KeyRanges, whose keys have options of their own.
        """
        description = table_pb2.TableDescription(
            name=name, width=width, dtype="f32", seed=seed, num_shards=num_shards)
        description.rule.name = rule
        description.rule.options.update(options or {})
        _set_uniform(description.initializer, uniform)
        _set_schedule(description.schedule, schedule)
        for key_range in key_ranges:
            key_range.write(description.key_ranges.add(), rule)
        workers = [directory.find(server) for server in servers]
        table = cls(description, workers, directory.job, credentials, source)
        for index, bounds in enumerate(table._bounds()):
            request = ps_pb2.CreateTableRequest(table=description)
            request.shards.first_shard = bounds[0]
            request.shards.num_shards = bounds[1] - bounds[0]
            table._call(index, "CreateTable", request)
        return table

    @classmethod
    def open(cls, directory, name, servers, credentials=Credentials(), source="python"):
        """Opens a table that exists."""
        workers = [directory.find(server) for server in servers]
        table = cls(table_pb2.TableDescription(name=name), workers, directory.job, credentials, source)
        request = ps_pb2.DescribeTableRequest(table=name)
        table.description = table._call(0, "DescribeTable", request).table
        return table

    def pull(self, keys, create_missing=True, function="", arguments=()):
        """The rows of `keys`, integers of any shape: float32 [keys..., width].

        function: a read function of the servers, whose results are returned instead, with a width
            of their own. arguments: its arguments, float32 of any shape.
        """
        keys = numpy.asarray(keys)
        distinct, positions = self._ordered(keys)
        rows = numpy.empty((len(distinct), 0 if function else self.description.width), numpy.float32)
        for index, part in self._parts(distinct):
            request = ps_pb2.PullRequest(
                table=self.description.name, keep_missing=not create_missing, function=function)
            _add_tensor(request, distinct[part].view(numpy.int64))
            for argument in arguments:
                _add_tensor(request, numpy.asarray(argument, numpy.float32))
            reply = self._call(index, "Pull", request)
            width = reply.tensors[0].dims[1]
            if rows.shape[1] != width:
                rows = numpy.empty((len(distinct), width), numpy.float32)
            rows[part] = numpy.frombuffer(reply.tensor_data[0], "<f4").reshape(-1, width)
        return rows[positions].reshape(*keys.shape, rows.shape[1])

    def push(self, keys, gradients, learning_rate=None, step=None):
        """Updates the rows of `keys` by gradients [keys..., width]; those of a repeated key are added.

        step: of the training, for the schedule; otherwise that of each row counts its updates.
        Returns when all servers have applied the push, each once.
        """
        keys = numpy.asarray(keys)
        width = self.description.width
        gradients = numpy.asarray(gradients, numpy.float32)
        if gradients.shape != (*keys.shape, width):
            raise ValueError(f"gradients must have the shape {(*keys.shape, width)}, "
                             f"not {gradients.shape}")
        distinct, positions = self._ordered(keys)
        sums = numpy.zeros((len(distinct), width), numpy.float32)
        numpy.add.at(sums, positions, gradients.reshape(-1, width))
        sequence = next(self._sequence)
        for index, part in self._parts(distinct):
            request = ps_pb2.PushRequest(table=self.description.name, sequence=sequence)
            if learning_rate is not None:
                request.learning_rate = learning_rate
            if step is not None:
                request.step = step
            _add_tensor(request, distinct[part].view(numpy.int64))
            _add_tensor(request, sums[part])
            self._call(index, "Push", request)

    def num_rows(self):
        """The number of rows that exist on all servers."""
        request = ps_pb2.DescribeTableRequest(table=self.description.name)
        return sum(self._call(index, "DescribeTable", request).num_rows
                   for index in range(len(self._workers)))

    def _bounds(self):
        count, shards = len(self._workers), self.description.num_shards
        return [(i * shards // count, (i + 1) * shards // count) for i in range(count)]

    @staticmethod
    def _ordered(keys):
        """The distinct keys in the order of their hashes, and the position of each key in them."""
        distinct, inverse = numpy.unique(
            keys.reshape(-1).astype(numpy.int64).view(numpy.uint64), return_inverse=True)
        order = numpy.argsort(hash_keys(distinct))
        ranks = numpy.empty(len(order), numpy.int64)
        ranks[order] = numpy.arange(len(order))
        return distinct[order], ranks[inverse.reshape(-1)]

    def _parts(self, distinct):
        """The servers that hold some of the ordered keys, each with a slice."""
        shards = shards_of(hash_keys(distinct), self.description.num_shards)
        for index, bounds in enumerate(self._bounds()):
            begin, end = numpy.searchsorted(shards, numpy.array(bounds, numpy.uint64))
            if begin < end:
                yield index, slice(int(begin), int(end))

    def _call(self, index, method, request, timeout=60):
        worker = self._workers[index]
        header = request.header
        header.job = self._job
        header.source = self._source
        header.source_rank = -1
        header.source_incarnation = self._incarnation
        header.destination = worker.name
        header.destination_incarnation = worker.incarnation
        for attempt in range(_ATTEMPTS):
            try:
                return getattr(self._stubs[index], method)(request, timeout=timeout)
            except grpc.RpcError as error:
                if error.code() not in _RETRIED or attempt + 1 == _ATTEMPTS:
                    raise CallError(error) from None
        raise AssertionError("unreachable")


def _set_uniform(initializer, bounds):
    initializer.kind = table_pb2.TableInitializer.UNIFORM
    initializer.a, initializer.b = bounds


def _set_schedule(message, phases):
    for first_step, name, options in phases:
        phase = message.phases.add(first_step=first_step)
        phase.schedule.name = name
        phase.schedule.options.update(options)


def _add_tensor(request, array):
    array = numpy.ascontiguousarray(array)
    request.tensors.add(dtype=_DTYPES[array.dtype.name], dims=array.shape)
    request.tensor_data.append(array.tobytes())
