"""Train a world model: `python -m eswm_gym.world_model.train random-wall --minutes 60`.

Runs on a CPU, a GPU, or, started by `torchrun --nproc-per-node N -m eswm_gym.world_model.train ...`, on several
processes. It needs torch, numpy, safetensors, lightning and tensorboard, no environment library. Ctrl-C leaves a
checkpoint that `--resume` continues.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import asdict
from pathlib import Path

import torch

from eswm_gym.runs import use_free_cores
from eswm_gym.world_model.presets import PRESETS
from eswm_gym.world_model.training import Run, fabric_for


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m eswm_gym.world_model.train", description=__doc__)
    parser.add_argument("name", choices=sorted(PRESETS), metavar="PRESET", help=f"one of {', '.join(sorted(PRESETS))}")
    parser.add_argument("--device", default="auto", help="cpu, cuda, mps or auto (default auto: a GPU if there is one)")
    budget = parser.add_mutually_exclusive_group()
    budget.add_argument("--minutes", type=float, default=60.0, help="train for so long in all (default 60)")
    budget.add_argument("--steps", type=int, help="or for so many steps in all")
    begin = parser.add_mutually_exclusive_group()
    begin.add_argument("--resume", action="store_true", help="continue from the checkpoint in --out")
    begin.add_argument("--start-from", type=Path, metavar="FILE", help="start from a saved model's weights")
    parser.add_argument("--out", type=Path, help="folder (default runs/NAME)")
    parser.add_argument("--seed", type=int, default=0, help="of weights and data (default 0)")
    parser.add_argument(
        "--precision",
        help="Lightning Fabric's, such as 32-true (default bf16-mixed, but 32-true on a CPU without AVX-512, which is "
        "many times slower at bfloat16)",
    )
    parser.add_argument(
        "--workers", type=int, help="processes that make data (default 0 on a CPU, else the cores less 2)"
    )
    parser.add_argument("--no-compile", action="store_true", help="do without torch.compile")
    parser.add_argument("--half", action="store_true", help="save the weights in float16, which takes half the room")
    parser.add_argument(
        "--eval-rooms", type=int, default=1000, help="rooms of the last evaluation, 48 queries each (default 1000)"
    )
    args = parser.parse_args(argv)
    if not args.minutes > 0 or (args.steps is not None and args.steps <= 0):  # nan is not greater either
        parser.error("--minutes and --steps must be greater than 0")
    if args.eval_rooms <= 0:
        parser.error("--eval-rooms must be greater than 0")
    if args.seed < 0 or (args.workers or 0) < 0:
        parser.error("--seed and --workers must not be negative")
    return args


def main(argv: list[str] | None = None) -> None:
    args = parse_args(argv)
    use_free_cores()
    out = args.out or Path("runs") / args.name
    fabric = fabric_for(args.device, args.precision or default_precision(args.device), out)
    fabric.launch()
    run = Run(args.name, fabric, out, args.seed, compiled=not args.no_compile)
    if args.resume:
        run.resume()
    elif args.start_from:
        run.start_from(args.start_from)
    workers = args.workers
    if workers is None:
        workers = 0 if fabric.device.type == "cpu" else max(1, (os.cpu_count() or 2) - 2)
    if fabric.is_global_zero:
        size = sum(p.numel() for p in run.model.parameters())
        print(
            f"{args.name}: {size / 1e6:.2f} M parameters on {fabric.device}, {asdict(run.preset.model)}",
            flush=True,
        )
    if run.train(args.steps, args.minutes, workers):
        run.finish(args.eval_rooms, torch.float16 if args.half else torch.float32)
    elif fabric.is_global_zero:
        print(f"stopped at step {run.step}; continue with --resume --out {out}")
    if torch.distributed.is_initialized():  # gloo's threads may abort a process that ends while they run
        torch.distributed.destroy_process_group()


def default_precision(device: str) -> str:
    """What this machine is fast at."""
    on_cpu = device == "cpu" or (device == "auto" and not torch.accelerator.is_available())
    return "32-true" if on_cpu and "AVX512" not in torch.backends.cpu.get_cpu_capability() else "bf16-mixed"


if __name__ == "__main__":
    main()
