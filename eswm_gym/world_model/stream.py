"""The stream of training problems, as tensors: fresh rooms, banks and queries, nothing stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch.utils.data import IterableDataset

from eswm_gym.rooms.transitions import Problems, Source


def to_tensors(problems: Problems, device: torch.device | str = "cpu") -> Problems:
    """The same problems as tensors on a device; arrays are not copied if that is the CPU."""
    return Problems(*(torch.as_tensor(part, device=device) for part in problems))


class ProblemStream(IterableDataset):
    """Endless training batches, each a function of (seed, rank, step) alone, so that a run can be resumed exactly.

    Args:
        sources: the mixture; every batch comes from one of them.
        lessons: what comes before it, as (batches, source), one after the other.
        rooms, queries: B and Q.
        seed: seed of the run.
        rank: which of the training processes this is.
        first: step to start at.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        rooms: int,
        queries: int,
        seed: int,
        rank: int = 0,
        first: int = 0,
        lessons: Sequence[tuple[int, Source]] = (),
    ) -> None:
        self.sources, self.rooms, self.queries = sources, rooms, queries
        self.lessons = [source for batches, source in lessons for _ in range(batches)]
        self.seed, self.rank, self.first = seed, rank, first

    def batch(self, step: int) -> Problems:
        """The batch of this step: the source is the same in every process, the rooms are not."""
        rng = np.random.default_rng([self.seed, step, 1 + self.rank])
        if step < len(self.lessons):
            return to_tensors(self.lessons[step].draw(rng, self.rooms, self.queries))
        share = np.array([source.share for source in self.sources])
        chosen = np.random.default_rng([self.seed, step]).choice(len(share), p=share / share.sum())
        return to_tensors(self.sources[chosen].draw(rng, self.rooms, self.queries))

    def __iter__(self) -> Iterator[Problems]:
        worker = torch.utils.data.get_worker_info()
        step, stride = (self.first + worker.id, worker.num_workers) if worker else (self.first, 1)
        while True:
            yield self.batch(step)
            step += stride
