"""A model of worlds of squares that makes no mistake, and such worlds."""

from collections import defaultdict

import gymnasium as gym
import numpy as np
import torch
from torch import nn

from eswm_gym.agents import ESWMAgent
from eswm_gym.rooms import MOVES, N_NAMES
from eswm_gym.world_model import ESWM, EncodedBank, ModelConfig, Prediction
from eswm_gym.world_model.codecs import NameCodec
from eswm_gym.wrappers import DiscreteStates

LEFT, DOWN, RIGHT, UP = range(4)  # of environments
STEPS = ((-1, 0), (0, 1), (1, 0), (0, -1))
NUMBERS = [MOVES.index(name) for name in ("left", "down", "right", "up")]
STEP_OF = dict(zip(NUMBERS, STEPS, strict=True))


class Squares(ESWM):
    """Path integration on squares: sure of moves between states of the bank, "I don't know" of all others.

    Of codes it knows what is in the bank.
    """

    def __init__(self, n_states=40, max_memories=60):
        super().__init__(ModelConfig(n_states, N_NAMES, max_memories=max_memories))
        self.codec = NameCodec(n_states, 1)
        self.weight = nn.Parameter(torch.zeros(()))
        self.banks = []

    def encode(self, memories):
        self.check_length(memories)
        self.banks += [[row for row in bank if row[1] >= 0] for bank in memories.tolist()]
        return EncodedBank(memories)

    def predict(self, bank, query):
        n_states, shape = self.config.n_states, query.shape[:2]
        end = torch.full(shape, n_states)
        for b, rows in enumerate(bank.memories.tolist()):
            facts = {(s, a): e for s, a, e in rows if a >= 0}
            place = self.places(facts)
            state = {there: s for s, there in place.items()}
            for q, (source, action, _) in enumerate(query[b].tolist()):
                found = facts.get((source, action))
                if found is None and source in place and action in STEP_OF:
                    found = state.get(beyond(place[source], action))
                end[b, q] = n_states if found is None else found
        logits = nn.functional.one_hot(end, n_states + 1) * 20.0
        return Prediction(logits, torch.zeros(*shape, self.config.n_actions + 1), logits)

    @staticmethod
    def places(facts):
        """Where the states lie; each part of the bank far from the others."""
        beside = defaultdict(list)
        for (source, action), end in facts.items():
            if source != end and action in STEP_OF:
                dx, dy = STEP_OF[action]
                beside[source].append((end, dx, dy))
                beside[end].append((source, -dx, -dy))
        place = {}
        for part, root in enumerate(beside):
            stack = [] if root in place else [root]
            place.setdefault(root, (part * 10**6, 0))
            while stack:
                here = stack.pop()
                for there, dx, dy in beside[here]:
                    if there not in place:
                        place[there] = place[here][0] + dx, place[here][1] + dy
                        stack.append(there)
        return place


def beyond(place, number):
    return place[0] + STEP_OF[number][0], place[1] + STEP_OF[number][1]


class Grid(gym.Env):
    """A grid of cells with walls, by hand: states are names, `jumps` says where moves lead that do not go straight."""

    def __init__(self, width, height, walls=(), goal=None, jumps=(), first_name=0, order=(LEFT, DOWN, RIGHT, UP)):
        self.width, self.height, self.walls, self.goal = width, height, set(walls), goal
        self.jumps, self.first_name, self.order = dict(jumps), first_name, order
        self.action_space = gym.spaces.Discrete(4)

    def to(self, cell, action):
        if (cell, action) in self.jumps:
            return self.jumps[cell, action]
        dx, dy = STEPS[self.order[action]]
        x, y = cell[0] + dx, cell[1] + dy
        inside = 0 <= x < self.width and 0 <= y < self.height
        return (x, y) if inside and (x, y) not in self.walls else cell

    def name(self, cell):
        return self.first_name + cell[0] + self.width * cell[1]

    def cell(self, name):
        return (name - self.first_name) % self.width, (name - self.first_name) // self.width

    def shown(self):
        goal = -1 if self.goal is None else self.name(self.goal)
        return {"state": self.name(self.at), "goal": goal, "actions": np.array(NUMBERS)}

    def reset(self, *, seed=None, options=None):
        self.at = (0, 0)
        return self.shown(), {}

    def step(self, action):
        self.at = self.to(self.at, int(action))
        success = self.at == self.goal
        return self.shown(), float(success), success, False, {"is_success": success, "terminated": success}


def lake(name="4x4", **options):
    env = gym.make("FrozenLake-v1", is_slippery=False, map_name=name)
    return DiscreteStates(env, **({"lattice": "square"} | options))


def walk(env, agent, steps, keep_memories=False, begin=True):
    """(state, action, end) of an episode, and its last info."""
    obs, info = env.reset(seed=0)
    if begin:
        agent.reset(obs, info, keep_memories=keep_memories)
    done = []
    for _ in range(steps):
        action = agent.act(obs, info)
        following, _, terminated, truncated, info = env.step(action)
        agent.observe(obs, action, following, info)
        done.append((int(obs["state"]), int(action), int(following["state"])))
        obs = following
        if terminated or truncated:
            break
    return done, info


def begun(bank=(), state=0, model=None, goal=-1, **info):
    """An agent in a state of a world of squares, with a bank."""
    agent = ESWMAgent(model or Squares(), seed=0)
    obs = {"state": state, "goal": goal, "actions": np.array(NUMBERS)}
    agent.reset(obs, {"memory_bank": bank, **info})
    return agent, obs


def meet(agent, obs, action, end, **info):
    """The agent looks around, and then a move leads somewhere."""
    agent.prepare([agent], [obs])
    agent.knowledge.table_at(obs["state"])
    following = {**obs, "state": end}
    agent.observe(obs, action, following, info)
    return following
