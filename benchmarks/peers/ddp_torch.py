"""PyTorch's side of the benchmark of data-parallel training: DistributedDataParallel with Gloo.

The argument is the number of processes; with 1, without DistributedDataParallel. Prints
"ready <version>", then replies to each line of standard input with the steps per second of a
perceptron 784-512-512-10 with batches of 128 per process, SGD, and one thread per process.
"""
import os
import socket
import subprocess
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn

_BATCH = 128
_STEPS = 40


def _serve(rank, world, port):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, GLOO_SOCKET_IFNAME="lo")
    dist.init_process_group("gloo", rank=rank, world_size=world)
    net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                        nn.Linear(512, 10))
    if world > 1:
        net = nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    loss = nn.CrossEntropyLoss()
    inputs, labels = torch.rand(_BATCH, 784), torch.randint(10, (_BATCH,))
    if rank == 0:
        print("ready", torch.__version__, flush=True)
    while True:
        request = [sys.stdin.readline() if rank == 0 else None]
        dist.broadcast_object_list(request, 0)
        if not request[0]:
            os._exit(0)
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(_STEPS):
            optimizer.zero_grad()
            loss(net(inputs), labels).backward()
            optimizer.step()
        dist.barrier()
        if rank == 0:
            print(_STEPS / (time.perf_counter() - begin), flush=True)


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
