"""Client of Hawser workers in Python, based on generated stubs only.

proto/rpc.proto and proto/store.proto describe the protocol completely.
"""
import array
import collections
import itertools
import secrets

import grpc

from proto import rpc_pb2, rpc_pb2_grpc, store_pb2, store_pb2_grpc, tensor_pb2

class Credentials:
    """Credentials of a client: none, the job's token, a certificate, or both."""

    def __init__(self, token=None, directory=None, job=None):
        """token: hexadecimal digits. directory: created by `hawser certs issue` for a worker of `job`."""
        self._token = token
        self._job = job
        self._tls = None
        if directory:
            files = []
            for name in ("ca.crt", "worker.key", "worker.crt"):
                with open(f"{directory}/{name}", "rb") as file:
                    files.append(file.read())
            self._tls = grpc.ssl_channel_credentials(*files)

    def channel(self, address, worker=None, options=()):
        """A channel to `worker`, or to any worker of the job."""
        if self._tls is None:
            channel = grpc.insecure_channel(address, options)
        else:
            # The host name in certificates, which does not depend on the address.
            name = f"{worker}.{self._job}.hawser" if worker else f"{self._job}.hawser"
            channel = grpc.secure_channel(
                address, self._tls, [*options, ("grpc.ssl_target_name_override", name)])
        return grpc.intercept_channel(channel, _Signer(self._token)) if self._token else channel


class _Signer(grpc.UnaryUnaryClientInterceptor):
    """Adds the token to each call."""

    def __init__(self, token):
        self._metadata = ("authorization", f"Bearer {token}")

    def intercept_unary_unary(self, continuation, details, request):
        return continuation(_Signed(details, self._metadata), request)


class _Signed(grpc.ClientCallDetails):
    def __init__(self, details, metadata):
        self.method = details.method
        self.timeout = details.timeout
        self.metadata = [*(details.metadata or ()), metadata]
        self.credentials = details.credentials
        self.wait_for_ready = details.wait_for_ready
        self.compression = details.compression


# Elements of a float32 tensor, row-major, and its sizes, outermost first.
Tensor = collections.namedtuple("Tensor", ["dims", "elements"])


class CallError(Exception):
    """The error of a call: gRPC's code and message, and the worker's ErrorDetail if it sent one.

    details: the messages that the worker has attached, in bytes, by their type: "hawser.v1.ErrorDetail".
    """

    def __init__(self, error):
        super().__init__(f"{error.code().name}: {error.details()}")
        self.code = error.code()
        self.message = error.details()
        self.details = {}
        for key, value in error.trailing_metadata() or ():
            if key == "grpc-status-details-bin":
                for item in rpc_pb2.StatusDetails.FromString(value).details:
                    self.details[item.type_url.split("/")[-1]] = item.value
        detail = self.details.get(rpc_pb2.ErrorDetail.DESCRIPTOR.full_name)
        self.detail = None if detail is None else rpc_pb2.ErrorDetail.FromString(detail)


class Directory:
    """The workers of a job, as registered in its store, and what else the store records. Thread-safe."""

    def __init__(self, address, job, credentials=Credentials()):
        self.job = job
        self._store = store_pb2_grpc.StoreStub(credentials.channel(address))
        hello = self._store.Hello(store_pb2.StoreHelloRequest(), timeout=10)
        self._incarnation = hello.server_incarnation
        # Changes are recognised by this number and their own.
        self._client = secrets.randbits(63) | 1
        self._sequence = itertools.count(1)

    def find(self, name, timeout=10):
        """Waits until the worker has joined and returns its WorkerRecord."""
        key = f"rpc/{self.job}/name/{name}".encode()
        reply = self._store.Get(
            store_pb2.StoreGetRequest(server_incarnation=self._incarnation, key=key),
            timeout=timeout)
        return rpc_pb2.WorkerRecord.FromString(reply.value)

    def read(self, key, timeout=10):
        """The value of a key of the store; empty if it is absent."""
        request = store_pb2.StoreCheckRequest(server_incarnation=self._incarnation)
        request.keys.append(key.encode())
        if self._store.Check(request, timeout=timeout).missing:
            return b""
        return self._store.Get(
            store_pb2.StoreGetRequest(server_incarnation=self._incarnation, key=key.encode()),
            timeout=timeout).value

    def record(self, key, value, timeout=10):
        """Sets an absent key of the store. Returns its value then, which another client may have set."""
        request = store_pb2.StoreCompareAndSetRequest(
            server_incarnation=self._incarnation, key=key.encode(), desired=value)
        request.request_id.client = self._client
        request.request_id.sequence = next(self._sequence)
        return self._store.CompareAndSet(request, timeout=timeout).value


class Worker:
    """One worker of a job, whose registered functions can be called."""

    def __init__(self, record, job, credentials=Credentials(), source="python"):
        """source: the name of the client; with TLS, the name in its certificate."""
        self.record = record
        self._job = job
        self._source = source
        # The worker limits its messages itself, so grpcio's limit of 4 MiB is not needed.
        options = [("grpc.max_receive_message_length", -1)]
        channel = credentials.channel(record.address, record.name, options)
        self._stub = rpc_pb2_grpc.WorkerServiceStub(channel)

    def call(self, function, signature, *arguments, timeout=10):
        """Calls "name" of type "R(A...)"; returns the result, None for void."""
        request = rpc_pb2.CallRequest(function=function, signature=signature)
        request.header.job = self._job
        request.header.source = self._source
        request.header.source_rank = -1
        request.header.destination = self.record.name
        request.header.destination_incarnation = self.record.incarnation
        for argument in arguments:
            _encode(argument, request.arguments.values.add(), request)
        try:
            reply = self._stub.Call(request, timeout=timeout)
        except grpc.RpcError as error:
            raise CallError(error) from None
        values = reply.results.values
        return _decode(values[0], reply) if values else None


def _encode(argument, value, message):
    if isinstance(argument, Tensor):
        value.tensor_index = len(message.tensors)
        message.tensors.add(dtype=tensor_pb2.DTYPE_F32, dims=argument.dims)
        message.tensor_data.append(array.array("f", argument.elements).tobytes())
    elif isinstance(argument, str):
        value.string_value = argument
    elif isinstance(argument, bool):
        value.bool_value = argument
    elif isinstance(argument, int):
        value.int_value = argument
    elif isinstance(argument, float):
        value.double_value = argument
    elif isinstance(argument, list):
        value.list_value.SetInParent()
        for item in argument:
            _encode(item, value.list_value.values.add(), message)
    else:
        raise TypeError(f"cannot send a {type(argument).__name__}")


def _decode(value, message):
    kind = value.WhichOneof("kind")
    if kind == "null_value":
        return None
    if kind == "tensor_index":
        header = message.tensors[value.tensor_index]
        if header.dtype != tensor_pb2.DTYPE_F32:
            raise TypeError(f"cannot read a tensor of {tensor_pb2.DType.Name(header.dtype)}")
        elements = array.array("f", message.tensor_data[value.tensor_index])
        return Tensor(list(header.dims), list(elements))
    if kind == "list_value":
        return [_decode(item, message) for item in value.list_value.values]
    if kind in ("int_list", "uint_list", "double_list"):
        return list(getattr(value, kind).values)
    return getattr(value, kind)
