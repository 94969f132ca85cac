"""Train presets over seeds on Ray: `python -m eswm_gym.world_model.sweep tiny rw-t --seeds 0 1 --minutes 1 --out DIR`.

Each trial is a Ray task that runs the ordinary training command in a process of its own, in DIR/PRESET/seed-N. Trials
that are finished are not run again, interrupted ones go on from their checkpoint; after each one the mean and the
standard deviation over seeds of all held-out figures are written to DIR/summary.json. On this machine Ray is started
for the sweep; on a cluster (`--address auto`, or the variable RAY_ADDRESS) DIR must be a folder that all nodes share.

What it costs: P presets x S seeds x M minutes of one core each, since one core is what a trial takes, as many at once
as there are cores. Measured here: one core trains on about 7,000 pairs a second with the preset random-wall, and the
shipped model took 239 core-minutes. Five seeds of an hour are five core-hours, or an hour on five cores. The twelve
presets of the paper's comparison with five seeds of an hour are 60 core-hours, under four hours on 16 cores.
Ray itself adds some ten seconds at the start and nothing after. Trials that share a core by overbooking it
(`--cpus 0.5`) learn half as much in the same minutes: compare by `--steps` then.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from eswm_gym.files import replacing
from eswm_gym.world_model.presets import PRESETS
from eswm_gym.world_model.pretrained import read_info

# What keeps glibc from returning and fetching memory all the time on a CPU; see docs/tutorials/train.md.
ALLOCATOR = {
    "MALLOC_MMAP_THRESHOLD_": "8000000000",
    "MALLOC_TRIM_THRESHOLD_": "16000000000",
    "MALLOC_TOP_PAD_": "500000000",
}


def trial_folder(out: Path, preset: str, seed: int) -> Path:
    return out / preset / f"seed-{seed}"


def trained(out: Path, preset: str, seed: int) -> dict[str, Any] | None:
    """What the JSON of a trial's model says, None if there is no model yet.

    Raises:
        CheckpointError: if it is damaged.
    """
    try:
        return read_info(trial_folder(out, preset, seed) / preset)
    except FileNotFoundError:
        return None


def is_finished(info: dict[str, Any] | None, steps: int | None, minutes: float) -> bool:
    """Whether a trial has had its steps or, without them, minutes; the JSON has hours to three decimals."""
    if info is None:
        return False
    done = info["training"]
    return done["steps"] >= steps if steps else done["hours"] + 0.0005 >= minutes / 60


def arguments_of(args: argparse.Namespace, preset: str, seed: int) -> list[str]:
    """The arguments of Python that train a trial, on from its checkpoint if there is one."""
    folder = trial_folder(args.out, preset, seed)
    budget = ["--steps", str(args.steps)] if args.steps else ["--minutes", str(args.minutes)]
    resume = ["--resume"] if (folder / "checkpoint.pt").exists() else []
    train = ["-m", "eswm_gym.world_model.train", preset, "--seed", str(seed), "--out", str(folder)]
    return [*train, *budget, *resume, *args.train]


def run_trial(arguments: Sequence[str], log: Path) -> int:
    """Run this machine's Python with these arguments, its output added to a file; returns its exit status."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as output:
        env = ALLOCATOR | dict(os.environ)
        return subprocess.run([sys.executable, *arguments], stdout=output, stderr=subprocess.STDOUT, env=env).returncode


def summarize(out: Path, presets: Sequence[str], seeds: Sequence[int]) -> dict[str, Any]:
    """Mean and standard deviation over the seeds that have a model.

    Returns:
        For each preset `seeds`, those that count, and `metrics`: for each setting and metric `mean` and `std`, the
        sample's, None for one seed alone.
    """
    summary = {}
    for preset in presets:
        found = {seed: info for seed in seeds if (info := trained(out, preset, seed)) is not None}
        settings: dict[str, dict[str, list[float]]] = {}
        for info in found.values():
            for setting, metrics in info["metrics"].items():
                for name, value in metrics.items():
                    if not name.startswith("n/"):
                        settings.setdefault(setting, {}).setdefault(name, []).append(value)
        summary[preset] = {
            "seeds": list(found),
            "metrics": {
                setting: {
                    name: {"mean": mean(values), "std": stdev(values) if len(values) > 1 else None}
                    for name, values in metrics.items()
                }
                for setting, metrics in settings.items()
            },
        }
    return summary


def table(summary: dict[str, Any]) -> str:
    """The summary as text, a line for each figure."""
    lines = [f"{'preset':18} {'setting':18} {'metric':28} {'mean':>8} {'std':>8}  seeds"]
    for preset, found in summary.items():
        for setting, metrics in found["metrics"].items():
            for name, value in metrics.items():
                std = "-" if value["std"] is None else f"{value['std']:.4f}"
                seeds = len(found["seeds"])
                lines.append(f"{preset:18} {setting:18} {name:28} {value['mean']:8.4f} {std:>8}  {seeds}")
    return "\n".join(lines)


def write_summary(out: Path, presets: Sequence[str], seeds: Sequence[int]) -> dict[str, Any]:
    """Write summary.json and return what it says."""
    summary = summarize(out, presets, seeds)
    with replacing(out / "summary.json") as temporary:
        temporary.write_text(json.dumps(summary, indent=2) + "\n")
    return summary


def import_ray() -> Any:
    """Ray.

    Raises:
        SystemExit: saying how to install it, if it is missing.
    """
    try:
        import ray  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise SystemExit(f"a sweep needs Ray ({error}): pip install 'eswm-gym[ray]'") from error
    return ray


def sweep(args: argparse.Namespace) -> list[str]:
    """Run what is not finished; returns the trials that failed, by their log."""
    waiting = [
        (preset, seed)
        for preset in args.presets
        for seed in args.seeds
        if not is_finished(trained(args.out, preset, seed), args.steps, args.minutes)
    ]
    n = len(args.presets) * len(args.seeds)
    print(f"{n} trials, {n - len(waiting)} of them finished before", flush=True)
    args.out.mkdir(parents=True, exist_ok=True)
    failed: list[str] = []
    if waiting:
        ray = import_ray()
        alone = {"include_dashboard": False} if args.address == "local" else {}
        ray.init(args.address, log_to_driver=False, **alone)
        task = ray.remote(num_cpus=args.cpus, num_gpus=args.gpus, max_retries=0)(run_trial)
        trials = {}
        for preset, seed in waiting:
            log = trial_folder(args.out, preset, seed) / "train.log"
            trials[task.remote(arguments_of(args, preset, seed), log)] = log
        while trials:
            (done,), _ = ray.wait(list(trials))
            log = trials.pop(done)
            try:
                status = ray.get(done)
            except ray.exceptions.RayError as error:  # its node died, for one
                status = str(error).splitlines()[-1]
            print(f"{log.parent}: {'finished' if status == 0 else f'failed ({status}), see {log}'}", flush=True)
            failed += [] if status == 0 else [str(log)]
            write_summary(args.out, args.presets, args.seeds)
        ray.shutdown()
    print(table(write_summary(args.out, args.presets, args.seeds)))
    return failed


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m eswm_gym.world_model.sweep",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Arguments after -- go to each training, such as -- --device cpu --precision 32-true.",
    )
    parser.add_argument(
        "presets", nargs="+", choices=sorted(PRESETS), metavar="PRESET", help=", ".join(sorted(PRESETS))
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], help="default 0 1 2")
    parser.add_argument("--out", type=Path, required=True, help="folder of the sweep")
    budget = parser.add_mutually_exclusive_group()
    budget.add_argument("--minutes", type=float, default=60.0, help="of each trial (default 60)")
    budget.add_argument("--steps", type=int, help="or for so many steps")
    parser.add_argument(
        "--address",
        default=os.environ.get("RAY_ADDRESS", "local"),
        help="of a running Ray cluster, such as auto (default RAY_ADDRESS or, without it, this machine alone)",
    )
    parser.add_argument("--cpus", type=float, default=1, help="cores of a trial (default 1)")
    parser.add_argument("--gpus", type=float, default=0, help="GPUs of a trial (default 0); may be a part of one")
    argv = sys.argv[1:] if argv is None else argv
    at = argv.index("--") if "--" in argv else len(argv)
    args = parser.parse_args(argv[:at])
    args.train, args.out = argv[at + 1 :], args.out.absolute()  # Ray's workers have a folder of their own
    if not args.minutes > 0 or (args.steps is not None and args.steps <= 0):
        parser.error("--minutes and --steps must be greater than 0")
    if min(args.seeds) < 0 or len(set(args.seeds)) < len(args.seeds):
        parser.error("--seeds must be different from each other and not negative")
    if args.cpus < 0 or args.gpus < 0 or args.cpus + args.gpus == 0:
        parser.error("--cpus and --gpus must not be negative, and one of them greater than 0")
    args.presets = list(dict.fromkeys(args.presets))
    return args


def main(argv: list[str] | None = None) -> None:
    if failed := sweep(parse_args(argv)):
        raise SystemExit(f"{len(failed)} trials failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
