"""PyTorch's side of the benchmark of collectives: torch.distributed with Gloo.

Replies to requests as collectives_side.h says.
"""
import statistics
import time

import torch
import torch.distributed as dist
import torch_group


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


torch_group.run(lambda world: lambda name, size: _measure(name, int(size), world))
