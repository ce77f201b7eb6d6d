"""PyTorch's side of the benchmark of distributed autograd: two processes, w0 and w1.

    dist_autograd_torch.py TRANSPORTS CHANNELS    TensorPipe's names; empty: its default

Prints "ready <version>". Then reads requests from standard input, one per line: "<calls> <passes>".
Runs that many passes, each through that many nested calls, and prints the passes per second.
"""
import os
import socket
import subprocess
import sys
import time

import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc

FLOATS = 16


def double(x, calls):
    """x * 2 ** calls, by as many nested calls, each to the other worker."""
    if calls == 1:
        return x + x
    other = "w1" if rpc.get_worker_info().name == "w0" else "w0"
    y = rpc.rpc_sync(other, double, args=(x, calls - 1))
    return y + y


def join(rank, port, transports, channels):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    torch.set_num_threads(1)
    chosen = {}
    if transports:
        chosen["_transports"] = transports.split(",")
    if channels:
        chosen["_channels"] = channels.split(",")
    options = rpc.TensorPipeRpcBackendOptions(**chosen)
    rpc.init_rpc(f"w{rank}", rank=rank, world_size=2, rpc_backend_options=options)


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


def callee(port, transports, channels):
    join(1, port, transports, channels)
    sys.stdin.read()
    os._exit(0)


def caller(transports, channels):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    # Ends with this process, whose end of the pipe then closes.
    subprocess.Popen([sys.executable, __file__, "--callee", port, transports, channels],
                     stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    join(0, port, transports, channels)
    print("ready", torch.__version__, flush=True)
    for line in sys.stdin:
        print(passes_per_second(*map(int, line.split())), flush=True)
    os._exit(0)


if __name__ == "__main__":
    if sys.argv[1] == "--callee":
        callee(*sys.argv[2:])
    else:
        caller(*sys.argv[1:])
