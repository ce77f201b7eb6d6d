"""Writes lr_golden.json: results of PyTorch's learning rate schedulers.

Each case contains the learning rate of each step, initially 0.5. Cases of OneCycleLR
also contain the momentum, and plateau cases the metrics.
Made with PyTorch 1.13.1: python3 make_lr_golden.py > lr_golden.json
"""
import json
import math
import sys
import warnings

import torch
from torch.optim import lr_scheduler as s

STEPS = 40
warnings.simplefilter("ignore")


def optimizer():
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5, momentum=0.9)


def run(make):
    opt = optimizer()
    scheduler = make(opt)
    lrs, momenta = [], []
    for _ in range(STEPS):
        lrs.append(opt.param_groups[0]["lr"])
        momenta.append(opt.param_groups[0]["momentum"])
        opt.step()
        scheduler.step()
    return dict(lr=lrs, momentum=momenta)


def run_plateau(options, metrics):
    opt = optimizer()
    scheduler = s.ReduceLROnPlateau(opt, **options)
    lrs = []
    for metric in metrics:
        scheduler.step(metric)
        lrs.append(opt.param_groups[0]["lr"])
    return dict(metrics=metrics, lr=lrs)


CASES = {
    "step": lambda o: s.StepLR(o, 7, 0.3),
    "multi_step": lambda o: s.MultiStepLR(o, [3, 8, 20], 0.2),
    "constant": lambda o: s.ConstantLR(o, 0.25, 6),
    "linear": lambda o: s.LinearLR(o, 0.1, 0.9, 10),
    "exponential": lambda o: s.ExponentialLR(o, 0.93),
    "polynomial": lambda o: s.PolynomialLR(o, 20, 2.0),
    "cosine": lambda o: s.CosineAnnealingLR(o, 10, 0.05),
    "warm_restarts": lambda o: s.CosineAnnealingWarmRestarts(o, 5, 2, 0.01),
    "equal_restarts": lambda o: s.CosineAnnealingWarmRestarts(o, 6),
    "lambda": lambda o: s.LambdaLR(o, lambda t: 1 / (1 + t)),
    "one_cycle": lambda o: s.OneCycleLR(o, 2.0, total_steps=STEPS + 1),
    "one_cycle_linear": lambda o: s.OneCycleLR(
        o, 2.0, total_steps=STEPS + 1, anneal_strategy="linear", pct_start=0.4,
        div_factor=10.0, final_div_factor=100.0, base_momentum=0.8, max_momentum=0.9),
    "one_cycle_three_phase": lambda o: s.OneCycleLR(
        o, 2.0, total_steps=STEPS + 1, three_phase=True),
    "sequential": lambda o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, 1.0, 5), s.CosineAnnealingLR(o, 20), s.ExponentialLR(o, 0.9)],
        [5, 22]),
    "chained": lambda o: s.ChainedScheduler([s.ConstantLR(o, 0.5, 4), s.ExponentialLR(o, 0.9)]),
}

METRICS = [math.exp(-0.3 * min(i, 6)) + (0.001 * (i % 3)) for i in range(STEPS)]
PLATEAU = {
    "plateau": (dict(factor=0.5, patience=3), METRICS),
    "plateau_max": (dict(mode="max", factor=0.2, patience=2, threshold=0.1, cooldown=4,
                         min_lr=0.01), [1 - m for m in METRICS]),
    "plateau_absolute": (dict(factor=0.1, patience=1, threshold=0.05, threshold_mode="abs",
                              eps=1e-3), METRICS),
    "plateau_max_absolute": (dict(mode="max", factor=0.5, patience=0, threshold=0.01,
                                  threshold_mode="abs"), [-m for m in METRICS]),
}

golden = dict(torch=torch.__version__,
              schedules={name: run(make) for name, make in CASES.items()},
              plateau={name: run_plateau(*args) for name, args in PLATEAU.items()})
json.dump(golden, sys.stdout, indent=1)
sys.stdout.write("\n")
