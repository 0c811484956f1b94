"""Learning curves of optimizers on text, each with its own sweep of learning rates.

``python -m benchmarks._optim_pilot`` writes ``results/optim_pilot.csv`` and prints the
table of the user guide. It takes about an hour of one core.
"""

import argparse
import time
from functools import partial
from pathlib import Path

import pandas as pd
import torch
from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import track
from torch.optim import SGD, AdamW
from torch.optim.lr_scheduler import LambdaLR

from benchmarks._bytes import LENGTH, Decoder, load_text, loss_of
from skextra.optim import SWAN, make_optimizer, swan_param_groups

STEPS, BATCH, MARKS, SEEDS = 400, 16, (50, 100, 200, 300, 400), (0, 1, 2)
OTHERS_LR, BETAS = 3e-3, (0.9, 0.95)
RESULTS = Path(__file__).parent / "results" / "optim_pilot.csv"


def adamw(model, lr):
    """AdamW with one rate."""
    return [AdamW(model.parameters(), lr, betas=BETAS, weight_decay=0)]


def adamw_apart(model, lr):
    """AdamW with a rate of its own for the matrices."""
    matrices, others = swan_param_groups(model)
    groups = [{"params": matrices["params"], "lr": lr}, {"params": others["params"]}]
    return [AdamW(groups, OTHERS_LR, betas=BETAS, weight_decay=0)]


def muon(model, lr):
    """torch's Muon, with AdamW for the rest."""
    both = make_optimizer("muon", model, OTHERS_LR, betas=BETAS)
    both.param_groups[0]["lr"] = lr
    return [both]


def sgd(model, lr):
    """Gradient descent with momentum, with AdamW for the rest."""
    matrices, others = swan_param_groups(model)
    rest = AdamW(others["params"], OTHERS_LR, betas=BETAS, weight_decay=0)
    return [SGD(matrices["params"], lr, momentum=0.9), rest]


def swan(model, lr, **params):
    """SWAN, or another direction of its class, with AdamW for the rest."""
    groups = swan_param_groups(model)
    return [SWAN(groups, OTHERS_LR, matrix_lr=lr, betas=BETAS, **params)]


# Name: how to make it, rates of the matrices, share of the steps to warm up.
OPTIMIZERS = {
    "AdamW, one rate": (adamw, (0.001, 0.002, 0.003, 0.005, 0.01), 0.1),
    "AdamW": (adamw_apart, (0.0005, 0.001, 0.002, 0.003, 0.005), 0.1),
    "SGD with momentum": (sgd, (0.03, 0.1, 0.3, 1.0, 3.0), 0.1),
    "Muon": (muon, (0.0025, 0.005, 0.01, 0.02, 0.04), 0.1),
    "SWAN": (partial(swan, direction="swan"), (0.0015, 0.003, 0.006, 0.012), 0),
    "SWAN, 5 iterations": (
        partial(swan, ns_steps=5),
        (0.0015, 0.003, 0.006, 0.012),
        0,
    ),
    "whitening alone": (
        partial(swan, direction="whiten"),
        (0.0015, 0.003, 0.006, 0.012),
        0,
    ),
    "row norm alone": (
        partial(swan, direction="rownorm"),
        (0.0005, 0.001, 0.002, 0.003),
        0,
    ),
    "SinkGD": (partial(swan, direction="sinkhorn"), (0.0005, 0.001, 0.002, 0.003), 0),
}


def train(name, lr, seed, steps=STEPS):
    """Train one model; return a row for each mark."""
    torch.set_num_threads(1)
    make, _, warm_up = OPTIMIZERS[name]
    numbers, n_symbols, _ = load_text()
    split = len(numbers) * 9 // 10
    rng = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    model = Decoder(n_symbols)
    optimizers = make(model, lr)
    decay = partial(rate, steps=steps, warm_up=warm_up * steps)
    schedules = [LambdaLR(optimizer, decay) for optimizer in optimizers]
    held_out = windows(numbers[split:], 256, torch.Generator().manual_seed(0))
    rows, seconds, in_steps = [], 0.0, 0.0
    for step in range(1, steps + 1):
        start = time.process_time()
        model.zero_grad()
        loss_of(model, windows(numbers[:split], BATCH, rng)).backward()
        before = time.process_time()
        for optimizer in optimizers:
            optimizer.step()
        end = time.process_time()
        seconds, in_steps = seconds + end - start, in_steps + end - before
        for schedule in schedules:
            schedule.step()
        if step in MARKS:
            with torch.inference_mode():
                loss = loss_of(model, held_out).item()
            rows.append(
                {
                    "optimizer": name,
                    "matrix_lr": lr,
                    "seed": seed,
                    "step": step,
                    "tokens": step * BATCH * LENGTH,
                    "loss": round(loss, 4),
                    "cpu_seconds": round(seconds, 2),
                    "of_which_steps": round(in_steps, 2),
                    "state_bytes": sum(map(state_bytes, optimizers)),
                }
            )
    return rows


def rate(step, steps, warm_up):
    """Return the factor of the learning rate: up in a line, a cosine down to a tenth."""
    if step < warm_up:
        return (step + 1) / warm_up
    share = torch.pi * torch.tensor((step - warm_up) / (steps - warm_up))
    return 0.1 + 0.45 * (1 + torch.cos(share).item())


def windows(numbers, n_windows, rng):
    """Return random windows of LENGTH + 1 symbols."""
    starts = torch.randint(len(numbers) - LENGTH, (n_windows, 1), generator=rng)
    return numbers[starts + torch.arange(LENGTH + 1)]


def state_bytes(optimizer):
    """Return what the optimizer keeps between two steps."""
    kept = [value for state in optimizer.state.values() for value in state.values()]
    return sum(value.nbytes for value in kept if isinstance(value, torch.Tensor))


def table(rows):
    """Return the best rate's mean curve over the seeds, for each optimizer."""
    curves = rows.pivot_table(
        index=["optimizer", "matrix_lr"], columns="step", values="loss"
    )
    last = rows["step"].max()
    best = curves.loc[curves.groupby("optimizer")[last].idxmin()]
    every = rows.groupby(["optimizer", "matrix_lr", "seed"]).last()
    every = every.groupby(["optimizer", "matrix_lr"])
    best["lowest"] = every["loss"].min()
    best["highest"] = every["loss"].max()
    best["seconds"] = every["cpu_seconds"].mean().round(1)
    best["of_which_steps"] = every["of_which_steps"].mean().round(1)
    best["state_bytes"] = every["state_bytes"].max()
    return best.round(3).sort_values(last)


def main():
    """Run all, or with --quick one seed and few steps, which are not saved."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    seeds, steps = ((0,), 50) if args.quick else (SEEDS, STEPS)
    jobs = [
        delayed(train)(name, lr, seed, steps)
        for name, (_, rates, _) in OPTIMIZERS.items()
        for lr in rates
        for seed in seeds
    ]
    console = Console(width=150)
    console.print(f"Text: sha256 {load_text()[2]}")
    runs = Parallel(n_jobs=args.jobs, return_as="generator")(jobs)
    found = [
        row for run in track(runs, total=len(jobs), console=console) for row in run
    ]
    rows = pd.DataFrame(found)
    if not args.quick:
        rows.to_csv(RESULTS, index=False)
    console.print(table(rows).to_string())


if __name__ == "__main__":
    main()
