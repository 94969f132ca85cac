"""Train the model of camera views: `python -m eswm_gym.world_model.indoor.train --pools pools --minutes 150`.

Four parts, one after the other, since each uses what those before it learned: how two views lie to each other (most of
the time), whether a way is free, what is seen at a pose, and how far to trust what is found in a bank. Ctrl-C leaves a
checkpoint that `--resume` continues.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm import tqdm

from eswm_gym.files import replacing
from eswm_gym.rooms.indoor import Asked, Pool, displacement_class, draw_bank, draw_queries, rotation_class
from eswm_gym.rooms.transitions import ACTION
from eswm_gym.runs import Interrupt, falling, progress_bar, use_free_cores
from eswm_gym.world_model.indoor.data import BANK_SIZES, Glances, Houses, Pairs, draw_glances, draw_pairs, draw_ways_of
from eswm_gym.world_model.indoor.model import IndoorBank, IndoorConfig, IndoorModel
from eswm_gym.world_model.indoor.pose_mixtures import between
from eswm_gym.world_model.indoor.saving import save_indoor
from eswm_gym.world_model.indoor.vision import Reduction, fast

PARTS = {"poses": 0.63, "ways": 0.04, "views": 0.27, "trust": 0.06}  # shares of the time
HOUSES, N_PAIRS, N_GLANCES, N_QUERIES = 8, 4096, 256, 24  # of a step; queries of a house
MANY_HOUSES, N_VIEWS = 64, 256  # of a step that learns ways
LR = {"poses": 1.5e-3, "ways": 2e-3, "views": 2e-3, "trust": 1e-2}
REPORT_EVERY = 120.0  # seconds, with a checkpoint each


class IndoorRun:
    """One training run.

    Args:
        houses: to train on.
        out: folder of the checkpoint.
        seed: of weights and data.
        compiled: whether to use torch.compile.
        config: shape of the model.
        device: where it trains; batches are drawn on the CPU.
    """

    def __init__(
        self,
        houses: Houses,
        reduction: Reduction,
        out: Path,
        seed: int,
        compiled: bool,
        config: IndoorConfig | None = None,
        device: str = "cpu",
    ) -> None:
        torch.manual_seed(seed)
        self.houses, self.out, self.seed, self.device = houses, out, seed, device
        self.model = IndoorModel(config or IndoorConfig())
        self.model.reduction.load_state_dict(reduction.state_dict())
        self.model.to(device)
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self.steps = dict.fromkeys(PARTS, 0)
        compare, read = self._compare, self._read
        if compiled:
            compare, read = torch.compile(compare, dynamic=False), torch.compile(read, dynamic=False)
        self.losses: dict[str, Callable[[np.random.Generator], Tensor]] = {
            "poses": lambda rng: self._pose_loss(rng, compare),
            "ways": self._way_loss,
            "views": lambda rng: self._view_loss(rng, read),
            "trust": self._trust_loss,
        }
        self.optimizers = {part: optimizers(list(self._trained(part)), LR[part]) for part in PARTS}

    def train(self, minutes: float, steps: int | None = None) -> bool:
        """Train until each part has had its share of the minutes, or so many steps, or Ctrl-C.

        Returns:
            Whether the run is complete.
        """
        with Interrupt() as interrupt:
            for part, share in PARTS.items():
                self._train_part(part, share * minutes * 60, steps, interrupt)
                if interrupt.stop:
                    break
        self.save()
        return not interrupt.stop

    def save(self) -> None:
        """Write the checkpoint; a kill at any moment leaves the old one or the new one."""
        state = {
            "seed": self.seed,
            "seconds": self.seconds,
            "steps": self.steps,
            "model": self.model.state_dict(),
            "optimizers": {part: [o.state_dict() for o in some] for part, some in self.optimizers.items()},
        }
        with replacing(self.out / "checkpoint.pt") as temporary:
            torch.save(state, temporary)

    def resume(self) -> None:
        """Go on from the checkpoint.

        Raises:
            FileNotFoundError: if there is none.
            ValueError: if it is of another seed.
        """
        state = torch.load(self.out / "checkpoint.pt", "cpu", weights_only=True)
        if state["seed"] != self.seed:
            raise ValueError(f"{self.out} holds a run of seed {state['seed']}, not {self.seed}")
        self.model.load_state_dict(state["model"])
        self.seconds, self.steps = state["seconds"], state["steps"]
        for part, some in self.optimizers.items():
            for optimizer, saved in zip(some, state["optimizers"][part], strict=True):
                optimizer.load_state_dict(saved)

    def _train_part(self, part: str, budget: float, steps: int | None, interrupt: Interrupt) -> None:
        before, begun, reported, losses = self.seconds[part], time.monotonic(), time.monotonic(), list[float]()
        bar = progress_bar()
        rates = [optimizer.param_groups[0]["initial"] for optimizer in self.optimizers[part]]
        while not interrupt.stop:
            done = self.seconds[part] / budget if steps is None else self.steps[part] / steps
            if done >= 1:
                break
            bar.update(min(1.0, done) - bar.n)
            for optimizer, rate in zip(self.optimizers[part], rates, strict=True):
                for group in optimizer.param_groups:
                    group["lr"] = rate * min(1.0, (self.steps[part] + 1) / 100) * falling(done, 0.4)
                optimizer.zero_grad()
            rng = np.random.default_rng([self.seed, list(PARTS).index(part), self.steps[part]])
            loss = self.losses[part](rng)
            loss.backward()
            nn.utils.clip_grad_norm_(self._trained(part), 1.0)
            for optimizer in self.optimizers[part]:
                optimizer.step()
            losses.append(loss.item())
            self.steps[part] += 1
            self.seconds[part] = before + time.monotonic() - begun
            if time.monotonic() - reported > REPORT_EVERY:
                reported = time.monotonic()
                self._report(part, losses)
                self.save()
                self.houses.read_new()
        bar.close()
        if losses:
            self._report(part, losses)

    def _report(self, part: str, losses: list[float]) -> None:
        recent = sum(losses[-50:]) / len(losses[-50:])
        tqdm.write(f"{self.seconds[part] / 60:6.1f} min  {part}  step {self.steps[part]:6d}  loss {recent:.3f}")
        sys.stdout.flush()

    def _trained(self, part: str) -> Iterator[nn.Parameter]:
        model = self.model
        modules = {
            "poses": (model.relative, model.reader.overlap),
            "ways": (model.ways,),
            "views": tuple(child for name, child in model.reader.named_children() if name != "overlap"),
            "trust": (model.locating, model.joining, model.action_unknown),
        }
        for module in modules[part]:
            yield from module.parameters()
        if part == "views":
            yield from (model.reader.place, model.reader.begin)
        if part == "trust":
            yield model.trust

    def _compare(self, tokens: Tensor, start: Tensor, end: Tensor) -> tuple[Any, Tensor]:
        return self.model.relative(self.model.relative.look(tokens), start, end)

    def _pose_loss(self, rng: np.random.Generator, compare: Callable[..., Any]) -> Tensor:
        """How two views lie to each other and whether they overlap, also as poses lie."""
        pairs = draw_pairs(rng, self.houses, HOUSES, N_PAIRS)
        pairs = Pairs(*self._moved(pairs._replace(tokens=_varied(rng, pairs.tokens))))
        with fast(self.device):
            actions, overlap = compare(pairs.tokens, pairs.start, pairs.end)
        by_pose = self.model.reader.overlap(pairs.action)
        return (
            -actions.log_prob(pairs.action).mean()
            + F.binary_cross_entropy_with_logits(overlap, pairs.overlap)
            + F.binary_cross_entropy_with_logits(by_pose, pairs.overlap)
        )

    def _way_loss(self, rng: np.random.Generator) -> Tensor:
        """What is in the way, as each view tells."""
        tokens, to, blocked = draw_ways_of(rng, self.houses, MANY_HOUSES, N_VIEWS)
        tokens, to, blocked = self._moved((_varied(rng, tokens), to, blocked))
        with torch.no_grad():
            columns = self.model.relative.look(tokens).columns
        return F.binary_cross_entropy_with_logits(self.model.ways(columns, to), blocked)

    def _read(self, *args: Tensor) -> tuple[Tensor, Tensor]:
        return self.model.reader(*args)

    def _view_loss(self, rng: np.random.Generator, read: Callable[..., Any]) -> Tensor:
        """Cosine distance of what is seen (paper), and whether that is known."""
        glances = draw_glances(rng, self.houses, HOUSES, N_GLANCES, self._overlap)
        glances = Glances(*self._moved(glances._replace(tokens=_varied(rng, glances.tokens))))
        with fast(self.device):
            seen, unknown = read(glances.tokens, glances.relative, glances.there)
        far = 1 - F.cosine_similarity(seen.float().flatten(1), glances.target.flatten(1), dim=1)
        told = glances.known | glances.unknown
        # Sums over counts: in few houses, there may be none of a kind.
        doubt = F.binary_cross_entropy_with_logits(
            unknown.float()[told], glances.unknown[told].float(), reduction="sum"
        ) / told.sum().clamp(min=1)
        return far[~glances.unknown].sum() / (~glances.unknown).sum().clamp(min=1) + 0.1 * doubt

    def _trust_loss(self, rng: np.random.Generator) -> Tensor:
        """Actions between views found in a bank, and whether they are known, in houses that were kept apart."""
        chosen = self.houses.draw(rng, HOUSES, apart=True)
        return torch.stack([self._trust_in(rng, house) for house in chosen]).mean()

    def _trust_in(self, rng: np.random.Generator, house: int) -> Tensor:
        pool, tokens = self.houses.pools[house], self.houses.tokens[house].to(self.device).float()
        queries = draw_queries(
            rng, pool, rows := draw_bank(rng, pool, int(rng.choice(BANK_SIZES))), N_QUERIES, (ACTION,)
        )
        with fast(self.device):
            bank = bank_of(self.model, pool, tokens, rows)
            actions, unknown = self.model.action_between(bank, tokens[queries.start], tokens[queries.end])
        true = pool.actions[queries.start, queries.end]
        known, action, *right = self._moved(
            torch.from_numpy(part)
            for part in (queries.asked != Asked.UNKNOWN, true, displacement_class(true), rotation_class(true))
        )
        doubt = F.binary_cross_entropy_with_logits(unknown, (~known).float())
        if not known.any():
            return doubt
        for said, of in zip(actions.classes(), right, strict=True):
            doubt = doubt + F.cross_entropy(said[known], of[known])
        # One wild guess must not outweigh all others.
        return doubt - actions.log_prob(action.float())[known].clamp(min=-15).mean()

    def _overlap(self, relative: Tensor) -> Tensor:
        return self.model.reader.overlap(relative.to(self.device)).cpu()

    def _moved(self, batch: Iterable[Tensor]) -> Iterator[Tensor]:
        return (part.to(self.device) for part in batch)


def bank_of(model: IndoorModel, pool: Pool, tokens: Tensor, rows: np.ndarray) -> IndoorBank:
    """The bank of transitions between poses (N, 2) of a pool, as `IndoorModel.encode` finds it."""
    views = np.unique(rows)
    pose = torch.from_numpy(pool.poses[views]).to(tokens.device)
    return IndoorBank(
        tokens[views],
        model.relative.look(tokens[views]),
        between(pose[:1], pose),
        torch.from_numpy(np.searchsorted(views, rows)).to(tokens.device),
    )


def _varied(rng: np.random.Generator, tokens: Tensor) -> Tensor:
    """Views (..., D) with noise, without which the networks learn the training houses by heart."""
    return tokens + torch.from_numpy(0.25 * rng.standard_normal(tokens.shape, dtype=np.float32))


def optimizers(parameters: list[nn.Parameter], lr: float) -> list[torch.optim.Optimizer]:
    """Muon for matrices, AdamW for what else there is."""
    matrices = [p for p in parameters if p.ndim == 2 and min(p.shape) > 32]
    others = [p for p in parameters if not any(p is m for m in matrices)]
    made: list[torch.optim.Optimizer] = [torch.optim.AdamW(others, lr=lr, betas=(0.9, 0.98), weight_decay=0.01)]
    if matrices:
        made.append(torch.optim.Muon(matrices, lr=2 * lr, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"))
    for optimizer in made:
        for group in optimizer.param_groups:
            group["initial"] = group["lr"]
    return made


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m eswm_gym.world_model.indoor.train", description=__doc__)
    parser.add_argument("--pools", type=Path, required=True, help="folder that python -m eswm_gym.indoor_pools wrote")
    parser.add_argument("--out", type=Path, default=Path("runs/indoor"), help="folder (default runs/indoor)")
    parser.add_argument("--minutes", type=float, default=150.0, help="in all (default 150)")
    parser.add_argument("--steps", type=int, help="or so many steps of each part")
    parser.add_argument("--seed", type=int, default=0, help="of weights and data (default 0)")
    parser.add_argument("--resume", action="store_true", help="continue from the checkpoint in --out")
    parser.add_argument(
        "--device", choices=("auto", "cpu", "cuda", "mps"), default="auto", help="(default auto: a GPU if there is one)"
    )
    parser.add_argument("--no-compile", action="store_true", help="do without torch.compile")
    args = parser.parse_args(argv)
    if not args.minutes > 0 or (args.steps is not None and args.steps <= 0) or args.seed < 0:
        parser.error("--minutes and --steps must be greater than 0, --seed must not be negative")
    use_free_cores()
    config, houses = IndoorConfig(), Houses(args.pools)
    reduction = Reduction(config.groups, config.kept)
    reduction.load_state_dict(torch.load(args.pools / "reduction.pt", weights_only=True))
    device = args.device
    if device == "auto":
        found = torch.accelerator.current_accelerator(check_available=True)
        device = "cpu" if found is None else found.type
    run = IndoorRun(houses, reduction, args.out, args.seed, not args.no_compile, config, device)
    if args.resume:
        run.resume()
    size = sum(p.numel() for p in run.model.parameters())
    print(f"indoor: {size / 1e6:.2f} M parameters on {device}, {len(run.houses)} houses", flush=True)
    if run.train(args.minutes, args.steps):
        path = args.out / "indoor.safetensors"
        save_indoor(
            run.model, path, {"seed": args.seed, "seconds": run.seconds, "steps": run.steps, "houses": len(run.houses)}
        )
        print(f"saved {path}")
    else:
        print(f"stopped; continue with --resume --out {args.out}")


if __name__ == "__main__":
    main()
