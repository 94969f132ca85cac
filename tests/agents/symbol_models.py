"""Models of symbols that know the truth: what goes wrong with them is the doing of the agent."""

import gymnasium as gym
import networkx as nx
import numpy as np
import torch
from torch import nn

import eswm_gym  # noqa: F401
from eswm_gym.agents import ESWMAgent
from eswm_gym.rooms import Room
from eswm_gym.world_model import ESWM, EncodedBank, ModelConfig, Prediction
from eswm_gym.world_model.codecs import IntegerCodec

N_STATES = 37


class TrueModel(ESWM):
    """Knows one room: certain of moves between states in the bank, "I don't know" of all others."""

    def __init__(self, room: Room) -> None:
        super().__init__(ModelConfig(n_states=N_STATES))
        self.codec = IntegerCodec(N_STATES, 1, embeddings=False)
        self.room = room
        self.passes = 0
        self.weight = nn.Parameter(torch.zeros(()))

    def encode(self, memories):
        self.passes += 1
        return EncodedBank(memories)

    def predict(self, bank, query):
        batch, n = query.shape[:2]
        end = torch.full((batch, n), N_STATES)
        for b in range(batch):
            known = {int(s) for row in bank.memories[b].tolist() for s in (row[0], row[2])}
            for q, (source, action, _) in enumerate(query[b].tolist()):
                if source in known and source in self.room.states[~self.room.walls]:
                    there = self.room.next_state(source, action)
                    end[b, q] = there if there in known else N_STATES
        logits = nn.functional.one_hot(end, N_STATES + 1) * 20.0
        return Prediction(logits, torch.zeros(batch, n, 7), logits)

    def activations(self, bank, query):
        """The coordinates of the source, on a sphere so large that cosine distance orders as distance does."""
        at = [[self.room.location_of(s) for s in row] for row in query[..., 0].tolist()]
        xy = torch.from_numpy(self.room.lattice.xy[at])
        return torch.cat([torch.full_like(xy[..., :1], 20), xy], -1)[None]


class ReverseModel(TrueModel):
    """Knows any room a little: the moves in the bank and the way back, "I don't know" of all others."""

    def __init__(self) -> None:
        super().__init__(Room(1, range(7)))

    def predict(self, bank, query):
        batch, n = query.shape[:2]
        end = torch.full((batch, n), N_STATES)
        for b in range(batch):
            known = {(e, (a + 3) % 6): s for s, a, e in bank.memories[b].tolist() if s != e}
            known |= {(s, a): e for s, a, e in bank.memories[b].tolist()}
            for q, (source, action, _) in enumerate(query[b].tolist()):
                end[b, q] = known.get((source, action), N_STATES)
        logits = nn.functional.one_hot(end, N_STATES + 1) * 20.0
        return Prediction(logits, torch.zeros(batch, n, 7), logits)


class Dreamer(TrueModel):
    """Knows the truth, except that it takes every move off the lattice for a shortcut to one state."""

    dream = 0

    def predict(self, bank, query):
        prediction = super().predict(bank, query)
        on_lattice = self.room.lattice.on_lattice
        for b, q in np.ndindex(*query.shape[:2]):
            source, action, _ = query[b, q].tolist()
            if not on_lattice[self.room.location_of(source), action]:
                prediction.end[b, q] = nn.functional.one_hot(torch.tensor(self.dream), N_STATES + 1) * 20.0
        return prediction


def true_graph(room: Room) -> nx.DiGraph:
    """The room's moves between free locations, states as nodes, from the lattice's geometry alone."""
    xy = room.lattice.xy
    graph = nx.DiGraph()
    free = [i for i in range(len(xy)) if not room.walls[i]]
    graph.add_nodes_from(int(room.states[i]) for i in free)
    for i in free:
        for j in free:
            if i != j and np.linalg.norm(xy[i] - xy[j]) < 1.1:
                graph.add_edge(int(room.states[i]), int(room.states[j]))
    return graph


def make(room, **kwargs):
    return gym.make("ESWM-RandomWall19-v0", **kwargs).unwrapped, ESWMAgent(TrueModel(room), seed=0)


def walk(env, agent, obs, info, steps=40, meanwhile=None):
    """States on the way until the episode ends."""
    way = [int(obs["state"])]
    for i in range(steps):
        if meanwhile:
            meanwhile(i)
        action = agent.act(obs, info)
        next_obs, _, terminated, _, info = env.step(action)
        agent.observe(obs, action, next_obs, info)
        obs = next_obs
        way.append(int(obs["state"]))
        if terminated:
            return way
    return way
