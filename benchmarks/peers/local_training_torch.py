"""PyTorch's side of the local training benchmark: one MLP, one thread.

Prints "ready <version> <BLAS>". Then reads requests from standard input, one per
line: "<case> <steps>". Runs that many training steps (forward, backward, SGD) and
prints the time in seconds. Models and data are those of local_training.cc.
"""
import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
import time

import torch

CASES = {
    "mlp_small": ((784, 128, 64, 10), 64),
    "mlp_large": ((784, 512, 512, 10), 128),
}


def blas():
    """File names of the BLAS libraries that this process has loaded."""
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "blas" in line}
    return ",".join(sorted(os.path.basename(p) for p in paths)) or "unknown"


class Training:
    def __init__(self, widths, batch):
        torch.manual_seed(1)
        layers = []
        for i in range(len(widths) - 1):
            layers.append(torch.nn.Linear(widths[i], widths[i + 1]))
            if i + 2 < len(widths):
                layers.append(torch.nn.ReLU())
        self.model = torch.nn.Sequential(*layers)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05)
        self.loss = torch.nn.CrossEntropyLoss()
        self.x = torch.rand(batch, widths[0])
        self.y = torch.randint(widths[-1], (batch,))

    def run(self, steps):
        start = time.perf_counter()
        for _ in range(steps):
            self.optimizer.zero_grad(set_to_none=True)
            self.loss(self.model(self.x), self.y).backward()
            self.optimizer.step()
        return time.perf_counter() - start


def main():
    torch.set_num_threads(1)
    trainings = {name: Training(*case) for name, case in CASES.items()}
    print("ready", torch.__version__, blas(), flush=True)
    for line in sys.stdin:
        name, steps = line.split()
        print(trainings[name].run(int(steps)), flush=True)


main()
