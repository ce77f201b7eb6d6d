"""PyTorch's side of the benchmark of collectives: torch.distributed with Gloo.

The argument is the number of processes. Prints "ready <version>", then reads requests from standard
input, one per line, and replies as collectives_side.h says.
"""
import os
import socket
import statistics
import subprocess
import sys
import time

import torch
import torch.distributed as dist


def _operation(name, count, world):
    data = torch.zeros(count)
    part = torch.zeros(count // world)
    if name == "all_gather":
        parts = list(torch.zeros(count).chunk(world))
        return lambda: dist.all_gather(parts, part)
    if name == "broadcast":
        return lambda: dist.broadcast(data, 0)
    return lambda: dist.all_reduce(data)


def _measure(name, size, world):
    run = _operation(name, size // 4, world)
    count = max(2, min(300, (32 << 20) // size))
    for _ in range(min(count, 10)):
        run()
    times = []
    for _ in range(3):
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(count):
            run()
        times.append((time.perf_counter() - begin) * 1e6 / count)
    return statistics.median(times)


def _serve(rank, world, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    if rank == 0:
        print("ready", torch.__version__, flush=True)
    while True:
        request = [sys.stdin.readline() if rank == 0 else None]
        dist.broadcast_object_list(request, 0)
        if not request[0]:
            os._exit(0)
        name, size = request[0].split()
        result = _measure(name, int(size), world)
        if rank == 0:
            print(result, flush=True)


def main():
    if len(sys.argv) == 4:
        _serve(*(int(word) for word in sys.argv[1:3]), sys.argv[3])
    world = int(sys.argv[1])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    for rank in range(1, world):
        subprocess.Popen([sys.executable, sys.argv[0], str(rank), str(world), port],
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _serve(0, world, port)


main()
