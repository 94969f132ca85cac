"""An explorer that knows the lattice but neither where on it it is nor, without a mask, where the rim is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eswm_gym.agents.base import Agent, Info, Observation, allowed_actions, end_of
from eswm_gym.agents.exploration import OPENNESS
from eswm_gym.agents.places import Place
from eswm_gym.agents.states import state_of
from eswm_gym.rooms import DISPLACEMENTS, hex_lattice

Cell = tuple[int, int]  # axial coordinates (q, r), from the start
MOVES: list[Cell] = [(q, r) for q, r in DISPLACEMENTS.tolist()]
WALL = 0.15  # share of a room's locations that are wall
RISK = 4.0  # how many steps a bump is worth
TIE = 0.1  # how many steps a unit of openness is worth


class BlindFrontierAgent(Agent):
    """Explores without mask and location: it infers from its bumps where the lattice may end.

    It counts its moves, and so knows where it is relative to its start. Every lattice of the given radii and every
    start on it is a hypothesis. One that lacks a visited cell is wrong; where a bump was on the lattice, it was into a
    wall, and the hypothesis is the less probable, the rarer walls are. The agent goes where the steps and the risk of
    a bump are least and, of several such cells, to the least open one. It shows what can be reached without a mask.

    Args:
        radii: which radii the lattice may have; none: it counts on no rim.
        seed: breaks ties.
        ordered: whether the risk and `OPENNESS` count, and not the distance alone.
    """

    def __init__(self, radii: Sequence[int] = (), seed: int | None = None, ordered: bool = True) -> None:
        self.radii, self.ordered, self.rng = tuple(radii), ordered, np.random.default_rng(seed)

    def spawn(self, seed: int | None = None) -> BlindFrontierAgent:
        return BlindFrontierAgent(self.radii, seed, self.ordered)

    def reset(self, obs: Observation, info: Info) -> None:
        self.cell: Cell = (0, 0)
        self.visited, self.bumped = {self.cell}, set[Cell]()
        self.hypotheses: list[tuple[set[Cell], float]] = []  # the cells of a lattice, seen from its start, and a weight
        for radius in self.radii:
            axial = hex_lattice(radius).axial
            for start in axial:
                self.hypotheses.append(({(q, r) for q, r in (axial - start).tolist()}, 1 / len(axial)))

    def observe(self, obs: Observation, action: int, next_obs: Observation, info: Info) -> None:
        ahead = _neighbors(self.cell)[action]
        if state_of(obs["state"]) == state_of(end_of(next_obs, info)):
            self.bumped.add(ahead)
            self.hypotheses = [(cells, w * (WALL if ahead in cells else 1)) for cells, w in self.hypotheses]
        else:
            self.cell = ahead
            self.visited.add(ahead)
            self.hypotheses = [(cells, w) for cells, w in self.hypotheses if ahead in cells]

    def act(self, obs: Observation, info: Info) -> int:
        costs = [(self.cost(cell, steps), self.rng.random(), move) for cell, (steps, move) in self.frontier().items()]
        return min(costs)[2] if costs else int(self.rng.choice(allowed_actions(info, len(MOVES))))

    def frontier(self) -> dict[Cell, tuple[int, int]]:
        """Every cell beside a visited one that was not tried yet: how many steps away it is, and the first of them."""
        found: dict[Cell, tuple[int, int]] = {}
        first, ring, steps = {self.cell: -1}, [self.cell], 0
        while ring:
            steps, following = steps + 1, []
            for here in ring:
                for action, cell in enumerate(_neighbors(here)):
                    if cell in first or cell in self.bumped:
                        continue
                    first[cell] = action if here == self.cell else first[here]
                    if cell in self.visited:
                        following.append(cell)
                    else:
                        found[cell] = steps, first[cell]
            ring = following
        return found

    def on_lattice(self, cell: Cell) -> float:
        """How probable it is that a cell is on the lattice."""
        total = sum(w for _, w in self.hypotheses)
        return sum(w for cells, w in self.hypotheses if cell in cells) / total if total else 1.0

    def cost(self, cell: Cell, steps: int) -> float:
        """What going to a cell costs, in steps."""
        if not self.ordered:
            return steps
        openness = 0.0
        for beside in _neighbors(cell):
            if beside in self.visited or beside in self.bumped:
                openness += OPENNESS[Place.VISITED if beside in self.visited else Place.WALL]
            else:
                inside = self.on_lattice(beside)
                openness += inside * OPENNESS[Place.FRONTIER] + (1 - inside) * OPENNESS[Place.OUTSIDE]
        return steps + RISK * (1 - self.on_lattice(cell) * (1 - WALL)) + TIE * openness


def _neighbors(cell: Cell) -> list[Cell]:
    """The cells to which the actions lead."""
    return [(cell[0] + q, cell[1] + r) for q, r in MOVES]
