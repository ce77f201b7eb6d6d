"""Tables of Hawser's parameter server in Python, with numpy, based on generated stubs only.

proto/ps.proto and docs/ps.md describe the protocol completely.

    directory = Directory("127.0.0.1:29500", job="default")
    table = Table.create(directory, "users", width=16, servers=["ps0", "ps1"])
    rows = table.pull(keys)                    # float32 [keys..., 16]
    table.push(keys, gradients)                # updates the rows by the table's rule
    rows = table.push_pull(keys, gradients)    # the same, and returns them
    table.assign(keys, weights)

A table with a clock (consistency) can be created, pulled from and assigned to. Only members of the job join its
clock, so that their end is noticed: pushes to such a table are refused.
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
_ASYNCHRONOUS, _SYNCHRONOUS = "asynchronous", "synchronous"


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
    """A table on one or several servers, which it follows when it is restored onto others. Not thread-safe."""

    def __init__(self, directory, description, route, credentials=Credentials(), source="python"):
        """route: the TableRoute of its servers, in the order of their shards."""
        self.description = description
        self._directory = directory
        self._credentials = credentials
        self._source = source
        # Pushes are recognised by this number and their own.
        self._incarnation = secrets.randbits(63) | 1
        self._sequence = itertools.count(1)
        self._use(route)

    @classmethod
    def create(cls, directory, name, width, servers, rule="RowWiseAdagrad", options=None,
               uniform=(0.0, 0.0), seed=0, num_shards=1024, retention=None, rows_in_memory=None,
               consistency=_ASYNCHRONOUS, credentials=Credentials(), source="python", schedule=(),
               key_ranges=()):
        """Creates the table, unless it exists.

        uniform: the range of initial weights. retention: a dict with fields of table_pb2.TableRetention, such
        as {"ttl_seconds": 3600, "max_rows": 10**6}. rows_in_memory: the rows that all servers keep in memory,
        the others in RocksDB; None: all. consistency: "asynchronous", "synchronous", or the number of clocks
        by which a worker may be ahead.
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
        if retention:
            description.retention.CopyFrom(table_pb2.TableRetention(**retention))
        if rows_in_memory is not None:
            description.storage.kind = table_pb2.TableStorage.ROCKSDB
            description.storage.rows_in_memory = rows_in_memory
        if consistency == _SYNCHRONOUS:
            description.consistency.mode = table_pb2.TableConsistency.SYNCHRONOUS
        elif consistency != _ASYNCHRONOUS:
            description.consistency.mode = table_pb2.TableConsistency.BOUNDED_STALENESS
            description.consistency.bound = consistency
        recorded = _recorded_route(directory, name)
        if recorded.version and list(recorded.servers) != list(servers):
            raise ValueError(f"table {name!r} exists on other servers: {list(recorded.servers)}")
        route = ps_pb2.TableRoute(version=max(recorded.version, 1), servers=servers)
        table = cls(directory, description, route, credentials, source)
        versions = set()
        for index, bounds in enumerate(table._bounds()):
            request = ps_pb2.CreateTableRequest(table=description, route=route)
            request.shards.first_shard = bounds[0]
            request.shards.num_shards = bounds[1] - bounds[0]
            versions.add(table._call(index, "CreateTable", request).version)
        if len(versions) != 1:
            raise RuntimeError(f"the servers of table {name!r} have several versions: restore it from a snapshot")
        route.version = versions.pop()
        if not recorded.version:
            record = ps_pb2.TableRoute(table=description, reserved=route.version)
            record.MergeFrom(route)
            directory.record(_route_key(directory, name), record.SerializeToString())
        table._use(route)
        return table

    @classmethod
    def open(cls, directory, name, credentials=Credentials(), source="python"):
        """Opens a table that exists, on the servers that the store records."""
        route = _recorded_route(directory, name)
        if not route.version:
            raise KeyError(f"no table {name!r} was created in job {directory.job!r}")
        return cls(directory, route.table, route, credentials, source)

    @property
    def servers(self):
        """The names of its servers, as far as it knows."""
        return list(self._route.servers)

    def pull(self, keys, create_missing=True, function="", arguments=()):
        """The rows of `keys`, integers of any shape: float32 [keys..., width].

        function: a read function of the servers, whose results are returned instead, with a width
            of their own. arguments: its arguments, float32 of any shape.
        """
        keys = numpy.asarray(keys)
        distinct, positions = self._ordered(keys)

        def send():
            rows = numpy.empty((len(distinct), 0 if function else self.description.width), numpy.float32)
            for index, part in self._parts(distinct):
                request = ps_pb2.PullRequest(
                    table=self.description.name, keep_missing=not create_missing,
                    version=self._route.version, function=function)
                _add_tensor(request, distinct[part].view(numpy.int64))
                for argument in arguments:
                    _add_tensor(request, numpy.asarray(argument, numpy.float32))
                reply = self._call(index, "Pull", request)
                width = reply.tensors[0].dims[1]
                if rows.shape[1] != width:
                    rows = numpy.empty((len(distinct), width), numpy.float32)
                rows[part] = _rows(reply, (-1, width))
            return rows

        rows = self._follow(send)
        return rows[positions].reshape(*keys.shape, rows.shape[1])

    def push(self, keys, gradients, learning_rate=None, step=None):
        """Updates the rows of `keys` by gradients [keys..., width]; those of a repeated key are added.

        step: of the training, for the schedule; otherwise that of each row counts its updates.
        Returns when all servers have applied the push, each once.
        """
        self._push_gradients(keys, gradients, learning_rate, step, pulls=False)

    def push_pull(self, keys, gradients, learning_rate=None, step=None):
        """Updates rows as push does, and returns them after the update: float32 [keys..., width]."""
        rows, positions = self._push_gradients(keys, gradients, learning_rate, step, pulls=True)
        return rows[positions].reshape(*numpy.shape(keys), self.description.width)

    def assign(self, keys, weights, keep_existing=False):
        """Makes the rows of `keys`, without repeats, new rows with weights [keys..., width].

        keep_existing: whether rows that exist keep their weights.
        """
        keys, weights = self._checked(keys, weights, "weights")
        distinct, positions = self._ordered(keys)
        if len(distinct) != keys.size:
            raise ValueError("a key to which weights are assigned is repeated")
        rows = numpy.empty((len(distinct), self.description.width), numpy.float32)
        rows[positions] = weights.reshape(rows.shape)
        kind = ps_pb2.ASSIGN_MISSING if keep_existing else ps_pb2.ASSIGN
        self._push(distinct, rows, ps_pb2.PushRequest(kind=kind))

    def num_rows(self):
        """The number of rows that exist on all servers."""
        def send():
            request = ps_pb2.DescribeTableRequest(
                table=self.description.name, version=self._route.version)
            return sum(self._call(index, "DescribeTable", request).num_rows
                       for index in range(len(self._workers)))

        return self._follow(send)

    def _checked(self, keys, rows, name):
        keys = numpy.asarray(keys)
        rows = numpy.asarray(rows, numpy.float32)
        expected = (*keys.shape, self.description.width)
        if rows.shape != expected:
            raise ValueError(f"{name} must have the shape {expected}, not {rows.shape}")
        return keys, rows

    def _push_gradients(self, keys, gradients, learning_rate, step, pulls):
        """Returns the rows of the distinct keys, if `pulls`, and the position of each key in them."""
        keys, gradients = self._checked(keys, gradients, "gradients")
        distinct, positions = self._ordered(keys)
        sums = numpy.zeros((len(distinct), self.description.width), numpy.float32)
        numpy.add.at(sums, positions, gradients.reshape(-1, self.description.width))
        return self._push(distinct, sums, ps_pb2.PushRequest(
            learning_rate=learning_rate, step=step, pull=pulls)), positions

    def _push(self, distinct, values, push):
        # The same for all attempts, so that servers recognise a push that they have applied.
        push.table = self.description.name
        push.sequence = next(self._sequence)

        def send():
            rows = numpy.empty_like(values)
            for index, part in self._parts(distinct):
                request = ps_pb2.PushRequest(version=self._route.version)
                request.MergeFrom(push)
                _add_tensor(request, distinct[part].view(numpy.int64))
                _add_tensor(request, values[part])
                reply = self._call(index, "Push", request)
                if push.pull:
                    rows[part] = _rows(reply, rows[part].shape)
            return rows

        return self._follow(send)

    def _use(self, route):
        """Sends requests to the servers of `route` from now on."""
        workers = [self._directory.find(server) for server in route.servers]
        unlimited = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        self._stubs = [
            ps_pb2_grpc.TableServiceStub(
                self._credentials.channel(worker.address, worker.name, unlimited))
            for worker in workers
        ]
        self._workers = workers
        self._route = route

    def _follow(self, send):
        """Sends a request, and again as a whole if the table was restored onto other servers."""
        while True:
            try:
                return send()
            except CallError as error:
                route = self._route_after(error)
                if route.version <= self._route.version:
                    raise
            self._use(route)

    def _route_after(self, error):
        """The route that the error of a server tells, or the store."""
        known = error.details.get(ps_pb2.TableRoute.DESCRIPTOR.full_name)
        if known is None and error.code != grpc.StatusCode.NOT_FOUND:
            return self._route
        route = ps_pb2.TableRoute.FromString(known or b"")
        return route if route.servers else _recorded_route(self._directory, self.description.name)

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
        header.job = self._directory.job
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


def _route_key(directory, name):
    return f"ps/{directory.job}/tables/{name}"


def _recorded_route(directory, name):
    """The TableRoute of the table in the store; version 0: there is none."""
    return ps_pb2.TableRoute.FromString(directory.read(_route_key(directory, name)))


def _rows(reply, shape):
    return numpy.frombuffer(reply.tensor_data[0], "<f4").reshape(shape)


def _add_tensor(request, array):
    array = numpy.ascontiguousarray(array)
    request.tensors.add(dtype=_DTYPES[array.dtype.name], dims=array.shape)
    request.tensor_data.append(array.tobytes())
