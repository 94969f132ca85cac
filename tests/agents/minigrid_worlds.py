"""A world of MiniGrid's in which everything can be counted by hand."""

from minigrid.core.grid import Grid
from minigrid.core.mission import MissionSpace
from minigrid.minigrid_env import MiniGridEnv


class Corridor(MiniGridEnv):
    """The agent at the left end of a corridor looks along it; the things lie in the cells before it."""

    def __init__(self, *things, **options):
        self.things = things
        options = {"max_steps": 50} | options
        super().__init__(MissionSpace(lambda: "walk"), width=len(things) + 3, height=3, **options)

    def _gen_grid(self, width, height):
        self.grid, self.mission = Grid(width, height), "walk"
        self.grid.wall_rect(0, 0, width, height)
        self.agent_pos, self.agent_dir = (1, 1), 0
        for x, thing in enumerate(self.things, 2):
            self.grid.set(x, 1, thing)
