"""PyTorch's side of the benchmark of data-parallel training: DistributedDataParallel with Gloo.

Replies to each request with the steps per second of a perceptron 784-512-512-10 with batches of 128
per process, SGD, and one thread per process. A single process runs without DistributedDataParallel.
"""
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch_group

_BATCH = 128
_STEPS = 40


def _make_reply(world):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                        nn.Linear(512, 10))
    if world > 1:
        net = nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    loss = nn.CrossEntropyLoss()
    inputs, labels = torch.rand(_BATCH, 784), torch.randint(10, (_BATCH,))

    def reply(*_):
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(_STEPS):
            optimizer.zero_grad()
            loss(net(inputs), labels).backward()
            optimizer.step()
        dist.barrier()
        return _STEPS / (time.perf_counter() - begin)

    return reply


torch_group.run(_make_reply)
