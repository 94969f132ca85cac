"""What the training scripts of the baselines share: a budget, a progress bar, checkpoints and Ctrl-C."""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import stable_baselines3
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from tqdm import tqdm

from eswm_gym.files import replacing
from eswm_gym.runs import Interrupt, falling, progress_bar


class Training(BaseCallback):
    """Trains an algorithm of stable-baselines3 until a budget is spent.

    Args:
        out: folder of the checkpoint.
        seed: of the run; a checkpoint of another seed is refused.
        share_done: how much of the budget is spent, from this object's `num_timesteps`, `episodes` and `seconds`.
        figures: what to report of a step, from its info and whether it ended an episode; None for nothing.
        lr: learning rate at the start; it falls linearly.
        report_every: seconds between lines, with a checkpoint each.
    """

    def __init__(
        self,
        out: Path,
        seed: int,
        share_done: Callable[[Training], float],
        figures: Callable[[dict[str, Any], bool], dict[str, float] | None],
        lr: float,
        report_every: float = 60.0,
    ) -> None:
        super().__init__()
        self.checkpoint, self.seed, self.lr, self.report_every = out / "checkpoint.pt", seed, lr, report_every
        self.share_done, self.figures = share_done, figures
        self.episodes, self.seconds, self._interrupt = 0, 0.0, Interrupt()
        self._seen: defaultdict[str, list[float]] = defaultdict(list)

    @property
    def done(self) -> float:
        """Share of the budget that is spent."""
        return self.share_done(self)

    def learning_rate(self, _: float) -> float:
        """The learning rate now, a schedule for the algorithm."""
        return self.lr * falling(self.done)

    def run(self, model: OnPolicyAlgorithm) -> bool:
        """Train until the budget is spent or Ctrl-C, and write a checkpoint.

        Returns:
            Whether the run is complete.
        """
        self._bar = progress_bar()
        self._begun = self._reported = time.monotonic()
        self._before = self.seconds
        fresh = model.num_timesteps == 0
        try:
            with self._interrupt:
                model.learn(sys.maxsize // 2, callback=self, log_interval=None, reset_num_timesteps=fresh)  # type: ignore[arg-type]
        finally:
            self._bar.close()
        self._report()
        self.save(model)
        return not self._interrupt.stop

    def save(self, model: OnPolicyAlgorithm) -> None:
        """Write the checkpoint; a kill at any moment leaves the old one or the new one."""
        state = {
            "seed": self.seed,
            "steps": model.num_timesteps,
            "episodes": self.episodes,
            "seconds": self.seconds,
            "parameters": model.get_parameters(),
        }
        with replacing(self.checkpoint) as temporary:
            torch.save(state, temporary)

    def resume(self, model: OnPolicyAlgorithm) -> None:
        """Go on from the checkpoint, in new episodes.

        Raises:
            FileNotFoundError: if there is none.
            ValueError: if it is of another seed.
        """
        state = torch.load(self.checkpoint, map_location=model.device, weights_only=True)
        if state["seed"] != self.seed:
            raise ValueError(f"{self.checkpoint} is of seed {state['seed']}, not {self.seed}")
        model.set_parameters(state["parameters"], device=model.device)
        model.num_timesteps, self.episodes, self.seconds = state["steps"], state["episodes"], state["seconds"]
        self.num_timesteps = model.num_timesteps
        model.set_random_seed(self.seed + model.num_timesteps)  # not the same rooms again

    def summary(self) -> dict[str, Any]:
        """What a JSON should say of the run."""
        cores = torch.get_num_threads()
        return {
            "seed": self.seed,
            "steps": self.num_timesteps,
            "episodes": self.episodes,
            "minutes": round(self.seconds / 60, 2),
            "cores": cores,
            "core_hours": round(cores * self.seconds / 3600, 3),
            "lr": self.lr,
            "torch": torch.__version__,
            "stable_baselines3": stable_baselines3.__version__,
        }

    def _on_step(self) -> bool:
        self.seconds = self._before + time.monotonic() - self._begun
        for info, done in zip(self.locals["infos"], self.locals["dones"], strict=True):
            self.episodes += int(done)
            for name, value in (self.figures(info, bool(done)) or {}).items():
                self._seen[name].append(value)
        return self.done < 1 and not self._interrupt.stop

    def _on_rollout_end(self) -> None:
        self._bar.update(min(1.0, self.done) - self._bar.n)
        if time.monotonic() - self._reported > self.report_every:
            self._reported = time.monotonic()
            self._report()
            self.save(self.model)  # type: ignore[arg-type]

    def _report(self) -> None:
        means = "  ".join(f"{name} {sum(seen) / len(seen):.3f}" for name, seen in sorted(self._seen.items()))
        self._seen.clear()
        tqdm.write(f"{self.seconds / 60:6.1f} min  {self.num_timesteps:9,} steps  {self.episodes:6,} episodes  {means}")
        sys.stdout.flush()


def add_options(parser: argparse.ArgumentParser, name: str) -> None:
    """The options that the training scripts share."""
    parser.add_argument("--out", type=Path, default=Path("runs") / name, help=f"folder (default runs/{name})")
    parser.add_argument("--device", default="cpu", help="cpu (default) or cuda")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true", help="continue from the checkpoint in --out")
    parser.add_argument("--report-every", type=float, default=60.0, metavar="SECONDS")
