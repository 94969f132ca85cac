"""A training run: optimizers, the loop, checkpoints that a run goes on from, and the finished model."""

from __future__ import annotations

import os
import signal
import sys
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.fabric import Fabric
from lightning.fabric.loggers import TensorBoardLogger
from torch.utils.data import DataLoader
from tqdm import tqdm

from eswm_gym.files import CheckpointError, replacing
from eswm_gym.rooms.transitions import COMPONENTS, Problems
from eswm_gym.runs import Interrupt, falling, progress_bar
from eswm_gym.world_model.eswm import ESWM
from eswm_gym.world_model.evaluate import HELD_OUT_SEED, VALIDATION_SEED, evaluate
from eswm_gym.world_model.preset import Preset
from eswm_gym.world_model.presets import PRESETS
from eswm_gym.world_model.pretrained import build_model, load_model, read_info, require_finite, save_model
from eswm_gym.world_model.stream import ProblemStream, to_tensors

WARM_UP_STEPS = 50
FEW_STEPS = 100  # a run of fewer is warned of
LITTLE = 0.2  # least accuracy of the ends of moves that the bank holds, in the best setting; less is warned of
REPORT_EVERY = 60.0  # seconds between reports, with a checkpoint each; longer where a report takes long


def make_optimizers(model: ESWM, lr: float) -> list[torch.optim.Optimizer]:
    """Muon for the blocks' matrices, AdamW for embeddings, heads, norms, relation biases and gates.

    The gates of an LSTM or a GRU, whose names end in a layer's number, learn much faster with AdamW.
    """
    matrices = [p for name, p in model.blocks.named_parameters() if name.endswith("weight") and p.ndim == 2]
    chosen = set(map(id, matrices))
    others = [p for p in model.parameters() if id(p) not in chosen]
    adam = torch.optim.AdamW(others, lr=lr, betas=(0.9, 0.98), weight_decay=0.0)
    if not matrices:
        return [adam]
    return [torch.optim.Muon(matrices, lr=lr, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"), adam]


def lr_scale(step: int, progress: float, decay_from: float) -> float:
    """Share of the peak learning rate: warm up by steps, hold, then fall from `decay_from` of the run to its end."""
    return min(1.0, (step + 1) / WARM_UP_STEPS) * falling(progress, decay_from)


def loops_at(progress: float, loops: int, all_from: float) -> int:
    """How often blocks are applied at this share of a run: once at first, `loops` times from `all_from` on."""
    return loops if progress >= all_from else 1 + int(progress / all_from * (loops - 1))


def fabric_for(device: str, precision: Any, out: Path) -> Fabric:
    """Fabric for this machine; under torchrun, for the processes that torchrun started."""
    local = int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    nodes = int(os.environ.get("WORLD_SIZE", 1)) // local
    logger = TensorBoardLogger(out, name="", version="log")
    return Fabric(accelerator=device, devices=local, num_nodes=nodes, precision=precision, loggers=logger)


class Run:
    """One training run: the model, its optimizers, and how far it is.

    Args:
        name: a preset.
        fabric: launched.
        out: folder of the checkpoint, the log and the finished model.
        seed: seed of weights and data.
        compiled: whether to use torch.compile.
    """

    def __init__(self, name: str, fabric: Fabric, out: Path, seed: int = 0, compiled: bool = True) -> None:
        self.name, self.fabric, self.out, self.seed = name, fabric, out, seed
        self.preset: Preset = PRESETS[name]
        self.step, self.seconds = 0, 0.0
        self.origin: dict[str, Any] | None = None  # how the weights that it started from were trained
        self.curve: list[dict[str, float]] = []  # what it reported, report by report
        torch.manual_seed(seed)
        self.model = build_model(self.preset.model)
        self.all_loops = self.model.loops
        optimizers = make_optimizers(self.model, self.preset.lr)
        self.compiled = compiled
        if compiled:  # block by block: a looped model unrolled whole takes minutes to compile
            torch._dynamo.config.recompile_limit = 64  # the sizes of the mixture's banks
            for block in self.model.blocks:
                block.compile(dynamic=False)
        self.forward, *self.optimizers = fabric.setup(self.model, *optimizers)

    @property
    def checkpoint(self) -> Path:
        return self.out / "checkpoint.pt"

    def save(self) -> None:
        """Write the checkpoint; a kill at any moment leaves the old one or the new one."""
        if self.fabric.is_global_zero:
            state = {
                "name": self.name,
                "seed": self.seed,
                "step": self.step,
                "seconds": self.seconds,
                "origin": self.origin,
                "curve": self.curve,
                "model": self.model.state_dict(),
                "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            }
            with replacing(self.checkpoint) as temporary:
                torch.save(state, temporary)
        self.fabric.barrier()

    def resume(self) -> None:
        """Continue from the checkpoint in `out`.

        Raises:
            FileNotFoundError: if there is none.
            CheckpointError: if it is damaged or foreign.
            ValueError: if it is of another preset or seed.
        """
        state = _read_checkpoint(self.checkpoint)
        if (state["name"], state["seed"]) != (self.name, self.seed):
            raise ValueError(
                f"{self.checkpoint} is of preset {state['name']!r} with seed {state['seed']}, "
                f"not {self.name!r} with seed {self.seed}"
            )
        try:  # on another model first: loading that fails half-way has changed what it loads into
            with torch.random.fork_rng(devices=[]):
                trial = build_model(self.preset.model)
            _load(state, trial, make_optimizers(trial, self.preset.lr))
        except Exception as error:
            raise CheckpointError(f"{self.checkpoint} does not fit preset {self.name!r}: {error!r}") from error
        _load(state, self.model, self.optimizers)
        self.step, self.seconds = state["step"], state["seconds"]
        self.origin, self.curve = state["origin"], state["curve"]

    def start_from(self, path: Path) -> None:
        """Start from the weights of a saved model in place of random ones.

        Raises:
            ValueError: if the preset's model cannot start from it; see `ESWM.starts_from`.
        """
        model = load_model(path)
        if not self.model.starts_from(model):
            raise ValueError(f"{path} is a model with {model.config}, preset {self.name!r} has {self.preset.model}")
        self.origin = read_info(path).get("training", {})

    def train(self, steps: int | None = None, minutes: float = 60.0, workers: int = 0) -> bool:
        """Train until `steps`, or without them `minutes`, in all, counting what was done before a resume.

        Compiling does not count.

        Returns:
            Whether the run is complete; False after Ctrl-C.
        """
        fabric, preset = self.fabric, self.preset
        stream = ProblemStream(
            preset.sources, preset.rooms, preset.queries, self.seed, fabric.global_rank, self.step, preset.lessons
        )
        pin = fabric.device.type == "cuda"
        loader = iter(DataLoader(stream, None, num_workers=workers, pin_memory=pin, worker_init_fn=_leave_ctrl_c_alone))
        bar = progress_bar(fabric.is_global_zero)
        pairs = preset.rooms * preset.queries * fabric.world_size
        smooth, first, took = None, self.step, 0.0
        self.forward.train()
        if self.compiled:
            self._compile()
        before, begun, reported = self.seconds, time.monotonic(), time.monotonic()
        with Interrupt() as interrupt:
            while True:
                self.seconds = before + time.monotonic() - begun
                done = self.step / steps if steps else self.seconds / (60 * minutes)
                progress, stop = done, interrupt.stop
                if fabric.world_size > 1:  # the first process decides for all, or they would wait for each other
                    progress, stop = fabric.broadcast((progress, stop))
                if progress >= 1 or stop:
                    break
                self._grow(progress)
                loss = self._step(next(loader), progress)
                self.step += 1
                smooth = loss if smooth is None else torch.lerp(smooth, loss, 0.02)
                bar.update(progress - bar.n)
                if time.monotonic() - reported > max(REPORT_EVERY, 10 * took):  # a tenth of the time at most
                    reported = time.monotonic()
                    self._report(smooth.item(), pairs * (self.step - first) / (reported - begun), bar)
                    self.save()
                    took = time.monotonic() - reported
            if not stop:
                self._grow(1.0)
            if smooth is not None:
                self._report(smooth.item(), pairs * (self.step - first) / (time.monotonic() - begun), bar)
        bar.close()
        self.save()
        return not stop

    def _compile(self) -> None:
        """Pass a batch of each size forth and back once, which is when torch.compile compiles for it."""
        lessons = (source for _, source in self.preset.lessons)
        sources = {source.capacity: source for source in (*lessons, *self.preset.sources)}
        if self.fabric.is_global_zero:
            print(f"compiling for banks of {', '.join(map(str, sorted(sources)))} memories ...", flush=True)
        begun = time.monotonic()
        for source in sources.values():
            drawn = to_tensors(source.draw(np.random.default_rng(0), self.preset.rooms, self.preset.queries))
            self.fabric.backward(self._loss(drawn))
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        if self.fabric.is_global_zero:
            print(f"compiled in {time.monotonic() - begun:.0f} s", flush=True)

    def _grow(self, progress: float) -> None:
        """Apply the blocks as often as at this share of a run from random weights; other runs apply all loops."""
        if self.origin is None:
            self.model.loops = loops_at(progress, self.all_loops, self.preset.all_loops_from)

    def _loss(self, problems: Problems) -> torch.Tensor:
        problems = Problems(*(tensor.to(self.fabric.device, non_blocking=True) for tensor in problems))
        return self.forward(problems.memories, problems.query).loss(problems)

    def _step(self, problems: Problems, progress: float) -> torch.Tensor:
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = self.preset.lr * lr_scale(self.step, progress, self.preset.decay_from)
        loss = self._loss(problems)
        self.fabric.backward(loss)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad()
        return loss.detach()

    def _report(self, loss: float, rate: float, bar: tqdm) -> None:
        if not self.fabric.is_global_zero:
            return
        metrics: dict[str, Any] = {"loss": loss, "pairs_per_second": rate, "minutes": self.seconds / 60}
        for setting, found in self._evaluate(100, VALIDATION_SEED).items():
            metrics |= {f"{setting}/{key}": value for key, value in found.items() if not key.startswith("n/")}
        self.fabric.log_dict(metrics, self.step)
        losses = {key: value for key, value in metrics.items() if key.endswith("loss")}
        self.curve.append({"step": self.step, "minutes": metrics["minutes"], **losses})
        line = f"{self.seconds / 60:6.1f} min  step {self.step:6d}  loss {loss:.4f}  {rate:7.0f} pairs/s"
        for setting in self.preset.settings:
            line += f"  {setting}"
            for kind in ("unseen", "unsolvable"):
                # For views there is accuracy alone: whether another view is true in the room is not measured.
                measure = "validity" if f"{setting}/validity/unseen/end" in metrics else "accuracy"
                cells = (metrics.get(f"{setting}/{measure}/{kind}/{part}") for part in COMPONENTS)
                line += f" {kind} " + "/".join("-" if v is None else f"{v:.3f}" for v in cells)
        bar.set_postfix_str(f"loss {loss:.3f}, {rate:.0f} pairs/s")
        tqdm.write(line)
        sys.stdout.flush()

    @torch.compiler.set_stance("force_eager")  # evaluation's shapes are not worth compiling for
    def _evaluate(self, n_rooms: int, seed: int) -> dict[str, dict[str, float]]:
        return {
            setting: evaluate(self.model, source, n_rooms, seed) for setting, source in self.preset.settings.items()
        }

    def finish(self, n_rooms: int, dtype: torch.dtype = torch.float32) -> None:
        """Evaluate on held-out rooms, other ones than those watched while training, and write the model.

        Args:
            n_rooms: of each setting.
            dtype: of the weights in the file.

        Raises:
            ValueError: if training has diverged: a weight is not finite.
        """
        if self.fabric.is_global_zero:
            require_finite(self.model.state_dict())
            metrics = self._evaluate(n_rooms, HELD_OUT_SEED)
            training = {
                "preset": self.name,
                "seed": self.seed,
                "steps": self.step,
                "hours": round(self.seconds / 3600, 3),
                "pairs": self.step * self.preset.rooms * self.preset.queries * self.fabric.world_size,
                "torch": torch.__version__,
                "curve": [{key: round(value, 4) for key, value in point.items()} for point in self.curve],
            } | ({} if self.origin is None else {"started_from": self.origin})
            save_model(self.model, self.out / self.name, dtype, training=training, metrics=metrics)
            for setting, found in metrics.items():
                for key, value in found.items():
                    if not key.startswith("n/"):
                        print(f"{setting:16} {key:28} {value:.4f}")
            print(f"saved {self.out / self.name}.safetensors")
            if self.step < FEW_STEPS:
                print(f"warning: {self.step} steps are too few to learn much from; the shipped models took thousands")
            known = [found[key] for found in metrics.values() if (key := "accuracy/seen/end") in found]
            if known and max(known) < LITTLE:
                print(
                    f"warning: of moves that the bank holds, the model gets {max(known):.0%} of the ends right, hardly "
                    "better than chance: train it longer"
                )


def _read_checkpoint(path: Path) -> dict[str, Any]:
    """What `Run.save` wrote, whole and undamaged."""
    try:
        with zipfile.ZipFile(path) as archive:  # torch.load does not look at the checksums
            if (damaged := archive.testzip()) is not None:
                raise zipfile.BadZipFile(f"{damaged} does not have its checksum")
        state = torch.load(path, map_location="cpu", weights_only=True)
        if missing := {"name", "seed", "step", "seconds", "origin", "curve", "model", "optimizers"} - set(state):
            raise KeyError(*sorted(missing))
    except FileNotFoundError:
        raise
    except Exception as error:  # of zipfile, torch and pickle, there is hardly one that damage cannot raise
        raise CheckpointError(f"{path} is no checkpoint, or a damaged one: {error!r}") from error
    return state


def _load(state: dict[str, Any], model: ESWM, optimizers: Sequence[torch.optim.Optimizer]) -> None:
    model.load_state_dict(state["model"])
    for optimizer, saved in zip(optimizers, state["optimizers"], strict=True):
        optimizer.load_state_dict(saved)


def _leave_ctrl_c_alone(worker: int) -> None:
    """A terminal sends Ctrl-C to data workers too; without them the loop could not reach its checkpoint."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
