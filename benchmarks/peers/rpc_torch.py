"""PyTorch's side of the benchmark of remote calls: two processes, w0 calling w1.

    rpc_torch.py TRANSPORTS CHANNELS    TensorPipe's names; empty: its default

Prints "ready <version>". Then reads requests from standard input, one per line, and replies with
a number, in the units of rpc_side.h.
"""
import statistics
import time

import torch
import torch.distributed.rpc as rpc

import torch_pair


def sink(tensor):
    return 0


def elapsed(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def small_tensor_call(calls):
    one = torch.ones(1)
    call = lambda: rpc.rpc_sync("w1", torch.add, args=(one, one))
    for _ in range(min(calls, 20)):
        call()
    return statistics.median(elapsed(call) for _ in range(calls)) * 1e6


def tensor_calls_in_flight(calls, in_flight):
    one = torch.ones(1)

    def run():
        slots = [None] * in_flight
        for i in range(calls + in_flight):
            if i >= in_flight:
                slots[i % in_flight].wait()
            if i < calls:
                slots[i % in_flight] = rpc.rpc_async("w1", torch.add, args=(one, one))

    return calls / elapsed(run)


def one_way(calls, size):
    tensor = torch.ones(size // 4)
    call = lambda: rpc.rpc_sync("w1", sink, args=(tensor,))
    call()
    return calls * size / elapsed(lambda: [call() for _ in range(calls)])


def remote_to_here(calls):
    one = torch.ones(1)

    def run():
        references = [rpc.remote("w1", torch.add, args=(one, one)) for _ in range(calls)]
        for reference in references:
            reference.to_here()

    return calls / elapsed(run)


CASES = {case.__name__: case
         for case in (small_tensor_call, tensor_calls_in_flight, one_way, remote_to_here)}


if __name__ == "__main__":
    torch_pair.run(lambda name, *numbers: CASES[name](*map(int, numbers)), num_worker_threads=4)
