"""PyTorch's side of the benchmark of the main job: one parameter server and some trainers.

    main_job_torch.py TRAINERS

Each is a process of its own; this one is the first trainer. Model, update rule, and numbers of samples
are those of examples/mnist_ps: 784-128-64-10, SGD with momentum, batches of 64 out of 10,000 samples,
of which each trainer takes its share. In each step a trainer fetches the parameters in a distributed
autograd context, and runs the distributed backward pass and the distributed optimizer.

Prints "ready <version> <BLAS>". Then reads requests from standard input, one per line: "<epochs>".
Trains for that many epochs and prints the samples per second of all trainers together.
"""
import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import socket
import subprocess
import sys
import threading
import time

import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
import torch.nn.functional as F
from torch.distributed.optim import DistributedOptimizer

WIDTHS = (784, 128, 64, 10)
SAMPLES = 10000
BATCH = 64
SERVER = "server"


class Shelf:
    """The parameters, at the server. The first trainer that asks has them made."""

    lock = threading.Lock()
    parameters = None


def references():
    with Shelf.lock:
        if Shelf.parameters is None:
            Shelf.parameters = []
            for fan_in, fan_out in zip(WIDTHS, WIDTHS[1:]):
                layer = torch.nn.Linear(fan_in, fan_out)
                # Not torch.nn.Parameter, which arrives as a new leaf that no gradient leaves.
                Shelf.parameters += [p.detach().requires_grad_() for p in layer.parameters()]
            Shelf.references = [rpc.RRef(parameter) for parameter in Shelf.parameters]
    return Shelf.references


def parameters():
    return Shelf.parameters


class Trainer:
    """The share of the samples and the optimizer of this trainer."""

    def __init__(self, index, trainers):
        generator = torch.Generator().manual_seed(1 + index)
        count = SAMPLES // trainers
        self.y = torch.randint(WIDTHS[-1], (count,), generator=generator)
        self.x = torch.rand(count, WIDTHS[0], generator=generator)
        # Brightens 20 pixels of each digit, so that the model can learn them.
        self.x[:, :200] += torch.eye(WIDTHS[-1])[self.y].repeat_interleave(20, 1)
        self.optimizer = DistributedOptimizer(
            torch.optim.SGD, rpc.rpc_sync(SERVER, references), lr=0.05, momentum=0.9)

    def step(self, x, y):
        with dist_autograd.context() as context:
            # One call for all of them, which is faster than one each.
            w = rpc.rpc_sync(SERVER, parameters)
            h = F.relu(F.linear(x, w[0], w[1]))
            h = F.relu(F.linear(h, w[2], w[3]))
            loss = F.cross_entropy(F.linear(h, w[4], w[5]), y)
            dist_autograd.backward(context, [loss])
            self.optimizer.step(context)
            return loss.item()

    def train(self, epochs):
        """Returns the number of samples, and the mean loss of the last epoch."""
        for _ in range(epochs):
            batches = torch.randperm(len(self.x)).split(BATCH)
            losses = [self.step(self.x[batch], self.y[batch]) for batch in batches]
        return epochs * len(self.x), sum(losses) / len(losses)


trainer = None


def prepare(index, trainers):
    global trainer
    trainer = Trainer(index, trainers)
    trainer.train(1)


def train(epochs):
    return trainer.train(epochs)


def join(name, rank, port, trainers):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    torch.set_num_threads(1)
    torch.manual_seed(1)
    rpc.init_rpc(name, rank=rank, world_size=trainers + 1)


def samples_per_second(epochs, trainers):
    start = time.perf_counter()
    others = [rpc.rpc_async(f"trainer{i}", train, args=(epochs,), timeout=0) for i in range(1, trainers)]
    results = [train(epochs)] + [other.wait() for other in others]
    elapsed = time.perf_counter() - start
    if any(loss > 1 for _, loss in results):
        raise RuntimeError(f"the model did not train: {results}")
    return sum(samples for samples, _ in results) / elapsed


def blas():
    """File names of the BLAS libraries that this process has loaded."""
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "blas" in line}
    return ",".join(sorted(os.path.basename(path) for path in paths)) or "unknown"


def lead(trainers):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    for rank in [0, *range(2, trainers + 1)]:
        # Ends with this process, whose end of the pipe then closes.
        subprocess.Popen([sys.executable, sys.argv[0], str(trainers), str(rank), port],
                         stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    join("trainer0", 1, port, trainers)
    prepare(0, trainers)
    for i in range(1, trainers):
        rpc.rpc_sync(f"trainer{i}", prepare, args=(i, trainers), timeout=0)
    print("ready", torch.__version__, blas(), flush=True)
    for line in sys.stdin:
        print(samples_per_second(int(line), trainers), flush=True)
    os._exit(0)


def follow(trainers, rank, port):
    join(SERVER if rank == 0 else f"trainer{rank - 1}", rank, port, trainers)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        lead(int(sys.argv[1]))
    else:
        follow(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
