"""PyTorch's side of the benchmark of distributed autograd: two processes, w0 and w1.

    dist_autograd_torch.py TRANSPORTS CHANNELS    TensorPipe's names; empty: its default

Prints "ready <version>". Then reads requests from standard input, one per line: "<calls> <passes>".
Runs that many passes, each through that many nested calls, and prints the passes per second.
"""
import time

import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc

import torch_pair

FLOATS = 16


def double(x, calls):
    """x * 2 ** calls, by as many nested calls, each to the other worker."""
    if calls == 1:
        return x + x
    other = "w1" if rpc.get_worker_info().name == "w0" else "w0"
    y = rpc.rpc_sync(other, double, args=(x, calls - 1))
    return y + y


def one_pass(x, calls):
    with dist_autograd.context() as context:
        y = rpc.rpc_sync("w1", double, args=(x, calls))
        dist_autograd.backward(context, [y.sum()])
        return dist_autograd.get_gradients(context)[x]


def passes_per_second(calls, passes):
    x = torch.ones(FLOATS, requires_grad=True)
    gradient = one_pass(x, calls)
    if not torch.equal(gradient, torch.full((FLOATS,), 2.0**calls)):
        raise RuntimeError(f"the gradient is {gradient}")
    start = time.perf_counter()
    for _ in range(passes):
        one_pass(x, calls)
    return passes / (time.perf_counter() - start)


if __name__ == "__main__":
    torch_pair.run(lambda calls, passes: passes_per_second(int(calls), int(passes)))
