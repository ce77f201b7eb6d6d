"""PyTorch's side of the benchmark of the parameter server: training steps of a click model.

    ps_torch.py TRAINERS

The server, a process of its own, has a table of 100,000 rows of 64 floats as an EmbeddingBag with
sparse gradients, and sums the 26 rows of each sample. Each trainer, of which this process is the first,
has a dense network 64-64-1, runs batches of 512 samples in a distributed autograd context, and updates
table and network by the distributed optimizer with SGD. With 0 trainers, table and network are in this
process.

Prints "ready <version> <BLAS>". Then reads requests from standard input, one per line: "<steps>". Runs
that many steps in each trainer and prints the samples per second of all trainers together.
"""
import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import socket
import subprocess
import sys
import time

import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
from torch import nn
from torch.distributed.optim import DistributedOptimizer

from main_job_torch import blas

ROWS, WIDTH, BATCH, IDS = 100_000, 64, 512, 26
RATE = 0.01


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.EmbeddingBag(ROWS, WIDTH, mode="sum", sparse=True)

    def forward(self, ids):
        return self.rows(ids)

    def references(self):
        return [rpc.RRef(p) for p in self.parameters()]


def network():
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1))


def batches(seed):
    generator = torch.Generator().manual_seed(seed)
    return [(torch.randint(ROWS, (BATCH, IDS), generator=generator),
             torch.rand(BATCH, 1, generator=generator)) for _ in range(16)]


class Trainer:
    def __init__(self, index, table):
        torch.manual_seed(index)
        self.table = table
        self.network = network()
        self.data = batches(index)
        self.loss = nn.MSELoss()
        self.optimizer = DistributedOptimizer(
            torch.optim.SGD,
            table.rpc_sync().references() + [rpc.RRef(p) for p in self.network.parameters()], lr=RATE)

    def run(self, steps):
        for i in range(steps):
            ids, y = self.data[i % len(self.data)]
            with dist_autograd.context() as context:
                sums = self.table.rpc_sync().forward(ids)
                dist_autograd.backward(context, [self.loss(self.network(sums), y)])
                self.optimizer.step(context)


class LocalTrainer:
    def __init__(self):
        torch.manual_seed(1)
        self.model = nn.Sequential(nn.EmbeddingBag(ROWS, WIDTH, mode="sum", sparse=True), *network())
        self.data = batches(1)
        self.loss = nn.MSELoss()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=RATE)

    def run(self, steps):
        for i in range(steps):
            ids, y = self.data[i % len(self.data)]
            self.optimizer.zero_grad()
            self.loss(self.model(ids), y).backward()
            self.optimizer.step()


trainer = None


def prepare(index, table):
    global trainer
    trainer = Trainer(index, table)
    trainer.run(10)


def run(steps):
    trainer.run(steps)


def join(name, rank, port, trainers):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    torch.set_num_threads(1)
    rpc.init_rpc(name, rank=rank, world_size=trainers + 1)


def serve_requests(run_all, trainers):
    print("ready", torch.__version__, blas(), flush=True)
    for line in sys.stdin:
        steps = int(line)
        start = time.perf_counter()
        run_all(steps)
        print(steps * trainers * BATCH / (time.perf_counter() - start), flush=True)
    os._exit(0)


def lead(trainers):
    if trainers == 0:
        torch.set_num_threads(1)
        local = LocalTrainer()
        local.run(10)
        serve_requests(local.run, 1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    for rank in [0, *range(2, trainers + 1)]:
        # Ends with this process, whose end of the pipe then closes.
        subprocess.Popen([sys.executable, sys.argv[0], str(trainers), str(rank), port],
                         stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    join("trainer0", 1, port, trainers)
    table = rpc.remote("server", Table)
    prepare(0, table)
    for i in range(1, trainers):
        rpc.rpc_sync(f"trainer{i}", prepare, args=(i, table), timeout=0)

    def run_all(steps):
        others = [rpc.rpc_async(f"trainer{i}", run, args=(steps,), timeout=0) for i in range(1, trainers)]
        run(steps)
        for other in others:
            other.wait()

    serve_requests(run_all, trainers)


def follow(trainers, rank, port):
    join("server" if rank == 0 else f"trainer{rank - 1}", rank, port, trainers)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        lead(int(sys.argv[1]))
    else:
        follow(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
