"""MiniGrid without anything learned: the memories put together as a map, and MiniGrid's rule of light."""

from __future__ import annotations

import torch
from torch import Tensor

from eswm_gym.agents.baselines.registration import N_KINDS, Registration, kinds_of, motion_of
from eswm_gym.rooms.grid import EMPTY, FORWARD, HERE, IN_FRONT, LEFT, N_ACTIONS, N_CELLS, RIGHT, SIZE, WALL
from eswm_gym.rooms.grid.views import is_lit
from eswm_gym.world_model import MASKED, EncodedBank, OverlapConfig, ViewModel, ViewPrediction
from eswm_gym.world_model.codecs import ViewCodec
from eswm_gym.world_model.overlap import INVERSE, STAY

FLOOR = 1e-4  # added to probabilities before their logarithm is taken


class MapOnly(ViewModel):
    """A map of the memories by `Registration`, with constants.

    It completes a view as the map shows it at the place in question, and what the given view shows of it; of that, one
    sees the cells that light reaches. If it is not known what one of these cells is, the answer is "I don't know". The
    action between two views is the one that makes the second view likeliest after the first.

    `ESWMAgent(MapOnly())` navigates, explores and adapts with it, and the evaluation of models measures it.

    Args:
        size: width of the rooms in cells, the walls around included.
        contradiction: evidence of two cells that differ against their being at one place.
        given: weight of the given view against that of the map where both show a cell. `MapOnly.for_errors` has weights
            for views with errors.
    """

    def __init__(self, size: int = SIZE, contradiction: float = -4.0, given: float = 1e6) -> None:
        super().__init__(OverlapConfig(size=size, layers=0))
        self.codec = ViewCodec()
        self.registration = Registration(size)
        evidence = self.registration.evidence
        evidence.data[evidence == evidence.min()] = contradiction
        self.given = given
        self.requires_grad_(False).eval()

    @staticmethod
    def for_errors(size: int = SIZE) -> MapOnly:
        """With weights for views with errors: the given view is one more vote, and a contradiction counts less."""
        return MapOnly(size, contradiction=-1.5, given=0.6)

    def encode(self, memories: Tensor) -> EncodedBank:
        self.check_length(memories)
        return EncodedBank(memories, self.registration.build_map(memories))

    def predict(self, bank: EncodedBank, query: Tensor) -> ViewPrediction:
        source, action, end = query[..., :N_CELLS], query[..., N_CELLS], query[..., N_CELLS + 1 :]
        no_source = source[..., 0] == MASKED
        given = torch.where(no_source[..., None], end, source)
        acted = action.clamp(min=0)
        motion = torch.where(no_source, INVERSE.to(query.device)[acted], motion_of(given, acted))
        mapped = self.look_up(bank, given, motion)
        # A step ahead that ends before a wall was a step into it, unless the map has floor behind.
        floor_behind = mapped[..., HERE, WALL:].sum(-1) > 0.5
        bumped = no_source & (action == FORWARD) & (end[..., IN_FRONT] == WALL) & ~floor_behind
        view, new = self.see(mapped, given, torch.where(bumped, STAY, motion))
        unknown = torch.logit(new.amax(2), eps=FLOOR)[..., None].expand(-1, -1, 2)
        return ViewPrediction(view, self._action_between(bank, source, end), view, unknown, new.sum(2))

    def look_up(self, bank: EncodedBank, given: Tensor, motion: Tensor) -> Tensor:
        """(B, Q, 25, 8) what the map shows around the places to which motions (B, Q) lead from views (B, Q, 25)."""
        registration, views = self.registration, bank.cache
        pose = registration.move(registration.poses(registration.match(given, views)), motion)  # (B, Q, P)
        return (pose @ views).unflatten(2, (N_CELLS, N_KINDS))

    def see(self, mapped: Tensor, given: Tensor, motion: Tensor) -> tuple[Tensor, Tensor]:
        """The views after motions (B, Q) from the given views (B, Q, 25), what these do not show as it is mapped.

        Returns:
            (B, Q, 25, 9) log-probabilities of the class of each cell, and (B, Q, 25) how probable it is that one sees
            it there for the first time.
        """
        shown = kinds_of(self.registration.carry_over(given, motion))
        known = (shown + mapped).sum(-1, keepdim=True).clamp(max=1)
        cells = mapped + self.given * shown
        cells = cells * (known / cells.sum(-1, keepdim=True).clamp(min=FLOOR))
        cells[..., HERE, :] = 0.0
        cells[..., HERE, EMPTY - 1] = known[..., HERE, :] = 1.0  # one never sees what one stands on
        walls = (cells[..., WALL - 1] > 0.5).cpu().numpy()
        lit = torch.from_numpy(is_lit(walls)).to(cells.device)[..., None]  # (B, Q, 25, 1)
        view = torch.cat([~lit, cells * lit], -1) + FLOOR  # the first class is UNSEEN
        return (view / view.sum(-1, keepdim=True)).log(), (lit * (1 - known))[..., 0]

    def is_blocked(self, before: Tensor, after: Tensor) -> Tensor:
        return self.registration.is_blocked(before, after)

    def contradicted(self, memories: Tensor, seen: Tensor) -> Tensor:
        return self.registration.contradicted(memories, seen)

    def _action_between(self, bank: EncodedBank, source: Tensor, end: Tensor) -> Tensor:
        """(B, Q, 4) log-likelihoods of the end view (B, Q, 25) after each action; those of queries without it are 0."""
        fit = source.new_zeros(*source.shape[:2], N_ACTIONS + 1, dtype=torch.float)
        both = (source[..., 0] != MASKED) & (end[..., 0] != MASKED)
        fit[..., -1] = -torch.inf  # the answer is never that no action is known
        if both.any():  # never where an agent imagines the ends of moves
            source, end = source * both[..., None], end * both[..., None]
            for action in (LEFT, RIGHT, FORWARD):
                motion = motion_of(source, torch.full_like(source[..., 0], action))
                view, _ = self.see(self.look_up(bank, source, motion), source, motion)
                fit[..., action] = view.gather(-1, end[..., None])[..., 0].sum(-1)
        return fit
