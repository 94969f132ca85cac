"""ESWM over camera views (paper: "ProcThor Experiments"): from a few moves and what was seen before and after each,
what lies between two views, what a move will show, or "I don't know".

Attention alternates between what is remembered together and what looks alike. Within a transition, the action carries
the pose of one view to the other. Across transitions, equal views are one place, and views that overlap tell where
each of them was taken, as well as two views can tell (`RelativePoses`). Queries are found in the same frame
(`Agreement`), and what is seen at a pose is read from what was seen near it (`ViewReader`). That poses are composed is
built in; how views tell of poses, how far to trust whom, what shows through, and what is not known are learned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from eswm_gym.world_model.indoor.agreement import Agreement
from eswm_gym.world_model.indoor.pose_mixtures import SPREADS, TURNS, PoseMixture, between, compose, reverse
from eswm_gym.world_model.indoor.relative_poses import Look, RelativePoses
from eswm_gym.world_model.indoor.view_reader import READ, ViewReader
from eswm_gym.world_model.indoor.vision import KEPT, Reduction
from eswm_gym.world_model.indoor.ways import Ways

EQUAL = 0.999  # cosine from which on two views are the same
SURE = 20.0  # log-odds of what is known
HELD = 100.0  # how well the bank tells, in nats, where a view was taken that it holds
PAIRS = 6  # of poses of start and end that an action may lead between


@dataclass(frozen=True)
class IndoorConfig:
    """Shape of the model.

    Attributes:
        encoder: name of the encoder whose features it reads.
        groups: widths of that encoder's groups of features.
        kept: directions kept of each group.
        dim: width of the networks.
    """

    encoder: str = "efficientnet-lite0-128"
    groups: tuple[int, ...] = (448, 1280)
    kept: int = KEPT
    dim: int = 128


class Memories(NamedTuple):
    """A bank of N transitions.

    Attributes:
        start, end: (N, 16, D) reduced tokens of views.
        action: (N, 3) float.
    """

    start: Tensor
    action: Tensor
    end: Tensor


class IndoorBank(NamedTuple):
    """What is kept of a bank's V different views.

    Attributes:
        tokens: (V, 16, D).
        look: what they are compared by.
        pose: (V, 3) in the frame of the first.
        rows: (N, 2) int, the views of each transition.
    """

    tokens: Tensor
    look: Look
    pose: Tensor
    rows: Tensor


class IndoorModel(nn.Module):
    """See the module; all that it is asked is about one bank."""

    def __init__(self, config: IndoorConfig) -> None:
        super().__init__()
        self.config = config
        self.reduction = Reduction(config.groups, config.kept)
        width = self.reduction.dim
        self.relative = RelativePoses(width, config.dim)
        self.locating, self.joining = Agreement(), Agreement()
        self.trust = nn.Parameter(
            torch.tensor([0.0, 0.5])
        )  # of poses found in the bank, by how well views agree on them
        self.action_unknown = nn.Sequential(nn.Linear(6, 32), nn.GELU(), nn.Linear(32, 1))
        self.reader = ViewReader(width, config.dim)
        self.ways = Ways(config.dim)

    def encode(self, memories: Memories) -> IndoorBank:
        """Find which views are the same, and where each was taken.

        Raises:
            ValueError: if the bank is empty.
        """
        tokens, rows = views_of(memories)
        look = self.relative.look(tokens)
        return IndoorBank(tokens, look, self._placed(look, rows, memories.action), rows)

    def locate(self, bank: IndoorBank, views: Tensor) -> tuple[PoseMixture, Tensor]:
        """Where views (Q, 16, D) may have been taken, in the frame of the bank, and (Q,) how well it tells, in nats."""
        return self._locate(bank, views, self.relative.look(views))

    def action_between(self, bank: IndoorBank | None, start: Tensor, end: Tensor) -> tuple[PoseMixture, Tensor]:
        """Which actions may lead from views (Q, 16, D) to others.

        Args:
            bank: None: by the two views alone.

        Returns:
            The actions, and (Q,) the log-odds that this is not known.
        """
        looks = self.relative.look(torch.cat([start, end]))
        n, same = len(start), cosine(start, end) > EQUAL
        direct, overlap = exactly(self.relative(looks, first := torch.arange(n, device=start.device), first + n), same)
        if bank is None:
            return direct, -overlap
        (at_start, sure_start), (at_end, sure_end) = (
            self._locate(bank, views, Look(*(part[rows] for part in looks)))
            for views, rows in ((start, slice(None, n)), (end, slice(n, None)))
        )
        return self.join(at_start, at_end, sure_start, sure_end, direct, overlap)

    def view_after(self, bank: IndoorBank, start: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """What actions (Q, 3) from where views (Q, 16, D) were taken will show.

        Returns:
            (Q, 16, D) and (Q,) the log-odds that it is not known.
        """
        pose = compose(self.locate(bank, start)[0].best(), action)
        return self.view_at(bank, pose, start, reverse(action))

    def view_at(self, bank: IndoorBank, pose: Tensor, given: Tensor, to_given: Tensor) -> tuple[Tensor, Tensor]:
        """The same at poses (Q, 3) of the bank's frame, from where a given view lies by actions `to_given` (Q, 3)."""
        relative = torch.cat([to_given[:, None], between(pose[:, None], bank.pose[None])], 1)  # (Q, 1 + V, 3)
        near = self.reader.overlap(relative[:, 1:]).topk(min(READ - 1, len(bank.pose)), 1).indices
        tokens = torch.cat([given[:, None], bank.tokens[near]], 1)
        relative = torch.cat([relative[:, :1], relative[:, 1:].gather(1, near[..., None].expand(-1, -1, 3))], 1)
        return self.reader(tokens, relative, torch.ones_like(relative[..., 0], dtype=torch.bool))

    def is_blocked(self, views: Tensor, action: Tensor) -> Tensor:
        """(Q, A) log-odds that something is in the way of actions (Q, A, 3) from where views (Q, 16, D) were taken."""
        return self.ways(self.relative.look(views).columns, action[..., :2])

    def join(
        self,
        start: PoseMixture,
        end: PoseMixture,
        sure_start: Tensor,
        sure_end: Tensor,
        direct: PoseMixture,
        overlap: Tensor,
    ) -> tuple[PoseMixture, Tensor]:
        """Actions (...) between poses that were found in a bank, and what the two views alone say of them.

        Returns:
            The actions, and (...) the log-odds that this is not known.
        """
        both = start.log_weight[..., :, None] + end.log_weight[..., None, :]
        best = both.flatten(-2).topk(PAIRS, -1)

        def of_best(start: Tensor, end: Tensor) -> Tensor:
            pairs = (start[..., :, None] ** 2 + end[..., None, :] ** 2).sqrt().flatten(-2)
            return pairs.gather(-1, best.indices)

        mean = between(start.mean[..., :, None, :], end.mean[..., None, :, :]).flatten(-3, -2)
        mean = mean.gather(-2, best.indices[..., None].expand(*best.indices.shape, 3))
        spread, turn = of_best(start.spread, end.spread), of_best(start.turn, end.turn)
        found = PoseMixture(mean, spread, turn, best.values.log_softmax(-1))
        fill = PAIRS - direct.spread.shape[-1]
        seen = PoseMixture(
            F.pad(direct.mean, (0, 0, 0, fill)),
            F.pad(direct.spread, (0, fill), value=SPREADS[1]),
            F.pad(direct.turn, (0, fill), value=TURNS[1]),
            F.pad(direct.log_weight, (0, fill), value=-30.0),
        )
        said = PoseMixture(*(torch.stack(both, dim) for *both, dim in zip(found, seen, (-3, -2, -2, -2), strict=True)))
        least = torch.minimum(sure_start, sure_end)
        held = least >= HELD
        trust = torch.stack([self.trust[0] + self.trust[1] * least, overlap], -1)
        trust = torch.where(held[..., None], trust.new_tensor([SURE, -SURE]), trust)
        actions, agreed = self.joining(said, trust)
        doubts = [sure_start, sure_end, overlap, agreed, start.spread[..., 0].log(), end.spread[..., 0].log()]
        unknown = self.action_unknown(torch.stack(doubts, -1) / 4)[..., 0]
        return actions, unknown.masked_fill(held, -SURE)

    def _locate(self, bank: IndoorBank, views: Tensor, look: Look) -> tuple[PoseMixture, Tensor]:
        q, v = len(views), len(bank.tokens)
        every = Look(*(torch.cat(parts) for parts in zip(bank.look, look, strict=True)))
        rows = torch.arange(v + q, device=views.device)
        of_bank, of_views = rows[:v].expand(q, v), rows[v:, None].expand(q, v)
        same = cosine(views[:, None], bank.tokens[None]) > EQUAL
        said, overlap = exactly(self.relative(every, of_bank, of_views), same)
        held = same.any(1)  # no other view knows better
        found, sure = self.locating(
            said.after(bank.pose.expand(q, v, 3)), overlap.masked_fill(held[:, None] & ~same, -SURE)
        )
        return found, sure.masked_fill(held, HELD)

    def _placed(self, look: Look, rows: Tensor, action: Tensor) -> Tensor:
        """(V, 3) the pose of each view: along transitions, and from one cluster to the next by views that overlap."""
        pose = action.new_zeros(len(look.whole), 3)
        known = torch.zeros_like(pose[:, 0], dtype=torch.bool)
        known[0] = True
        along(pose, known, rows, action)
        while not known.all():  # a cluster that no move joins to the others: where all its views say together
            old, first = known.nonzero()[:, 0], int((~known).int().argmax())
            offset, member = torch.zeros_like(pose), torch.zeros_like(known)
            member[first] = True
            along(offset, member, rows, action)
            new = member.nonzero()[:, 0]
            start, end = old.repeat(len(new)), new.repeat_interleave(len(old))
            said, overlap = self.relative(look, start, end)
            back = reverse(offset[end])
            said = said.after(pose[start])
            said = said._replace(
                mean=compose(said.mean, back[:, None]),
                spread=(said.spread**2 + (said.turn * offset[end][:, None, :2].norm(dim=-1)) ** 2).sqrt(),
            )
            found, _ = self.locating(said, overlap)
            pose[new], known[new] = compose(found.best(), offset[new]), True
        return pose


def along(pose: Tensor, known: Tensor, rows: Tensor, action: Tensor) -> None:
    """Fill in the poses (V, 3) of views that transitions (N, 2) join to those whose poses are known (V,)."""
    start, end = rows.T
    back = reverse(action)
    while True:
        ahead, behind = known[start] & ~known[end], known[end] & ~known[start]
        if not (ahead | behind).any():
            return
        pose[end[ahead]] = compose(pose[start[ahead]], action[ahead])
        pose[start[behind]] = compose(pose[end[behind]], back[behind])
        known[end[ahead]], known[start[behind]] = True, True


def views_of(memories: Memories) -> tuple[Tensor, Tensor]:
    """The different views (V, 16, D) of a bank, and (N, 2) which of them each transition is between.

    Raises:
        ValueError: if the bank is empty.
    """
    if not len(memories.action):
        raise ValueError("a bank needs at least one transition")
    tokens, row = distinct(torch.stack([memories.start, memories.end], 1).flatten(0, 1))
    return tokens, row.unflatten(0, (-1, 2))


def distinct(tokens: Tensor) -> tuple[Tensor, Tensor]:
    """The different views (V, 16, D) among (N, 16, D), and (N,) which of them each is."""
    same = cosine(tokens[:, None], tokens[None]) > EQUAL
    first = same.int().argmax(1)  # the first that is equal
    kept, row = first.unique(return_inverse=True)
    return tokens[kept], row


def cosine(one: Tensor, other: Tensor) -> Tensor:
    """(...) cosine of views (..., 16, D), all tokens together."""
    return F.cosine_similarity(one.flatten(-2), other.flatten(-2), dim=-1)


def exactly(found: tuple[PoseMixture, Tensor], same: Tensor) -> tuple[PoseMixture, Tensor]:
    """The same, but that equal views (...) were taken at the same pose."""
    (said, overlap), one = found, same[..., None]
    parts = (
        said.mean.masked_fill(one[..., None], 0.0),
        said.spread.masked_fill(one, SPREADS[0]),
        said.turn.masked_fill(one, TURNS[0]),
        said.log_weight.masked_fill(one, 0.0).log_softmax(-1),
    )
    return PoseMixture(*parts), overlap.masked_fill(same, SURE)
