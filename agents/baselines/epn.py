"""EPN, Episodic Planning Networks (Ritter et al. 2021; paper: appendix "Episodic Planning Networks")."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from eswm_gym.agents.base import Info, Observation, end_of
from eswm_gym.agents.baselines.policy_agent import TOGETHER, PolicyAgent
from eswm_gym.agents.episodes import Episode, Setup, run_in_step
from eswm_gym.agents.states import state_of
from eswm_gym.envs import HexRoomEnv
from eswm_gym.rooms import N_ACTIONS, Room, RoomConfig
from eswm_gym.rooms.transitions import pad
from eswm_gym.world_model.blocks import N_RELATIONS
from eswm_gym.wrappers import EpisodicMemory, ManyGoals

CAPACITY = 200  # transitions in the episodic memory


def deduplicate(memory: Tensor) -> Tensor:
    """Keep each transition once and cut what is padding in every row.

    Args:
        memory: (B, M, 3) int64, rows of -1 are padding.

    Returns:
        (B, N, 3) int64, N at least 1, padding last; the order carries nothing.
    """
    n = int(memory.max().clamp(min=0)) + 1
    source, action, end = memory.unbind(2)
    code = torch.where(source < 0, -1, (source * N_ACTIONS + action) * n + end).sort(1, descending=True).values
    again = F.pad(code[:, 1:] == code[:, :-1], (1, 0))
    code = code.masked_fill(again, -1).sort(1, descending=True).values
    code = code[:, : max(1, int((code >= 0).sum(1).max()))]
    parts = (code // n // N_ACTIONS, code // n % N_ACTIONS, code % n)
    return torch.stack([torch.where(code < 0, -1, part) for part in parts], 2)


class Planner(nn.Module):
    """The self-attention block that is iterated over the memories, pre-norm, with a bias for transitions that touch."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(dim)
        self.query_key_value = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.mlp_norm = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        """Let tokens x (B, N, dim) read each other; bias is (B * heads, N, N)."""
        parts = self.query_key_value(self.attention_norm(x)).unflatten(2, (3, self.heads, -1))
        query, key, value = parts.permute(2, 0, 3, 1, 4).flatten(1, 2)
        attention = torch.baddbmm(bias, query, key.mT, alpha=key.shape[-1] ** -0.5).softmax(-1)
        read = (attention.to(value.dtype) @ value).unflatten(0, (-1, self.heads))
        x = x + self.out(read.transpose(1, 2).flatten(2))
        return x + self.mlp(self.mlp_norm(x))


class EPNTorso(BaseFeaturesExtractor):
    """Memories to features of the policy and the value.

    A token is a memory: its action, and whether its source and its end are the current state, the goal and each
    other. States are not embedded, so that any vocabulary will do; attention sees which memories touch, the help
    that our world model has too. Repeated transitions are dropped: in a deterministic room they say nothing new.
    Features are maxima over all memories and, action by action, over those that leave the current state by it and
    those that enter the current state by it, so that it shows which move each memory is about.

    Args:
        observation_space: of `state`, `goal` and `memory`, as the wrapper `EpisodicMemory` makes them.
        dim: width of a token.
        heads: attention heads.
        iterations: how often the block is applied: how far a plan can look.
    """

    def __init__(self, observation_space: spaces.Space, dim: int = 64, heads: int = 4, iterations: int = 5) -> None:
        super().__init__(observation_space, dim + 2 * N_ACTIONS * (dim // 4))
        self.iterations = iterations
        self.low_precision = False  # faster to train; what is loaded computes in float32
        self.embed_action = nn.Embedding(N_ACTIONS + 1, dim)  # the last row is the null token's
        self.embed_flags = nn.Linear(5, dim)
        # Each head starts out reading along one relation.
        self.relation_bias = nn.Parameter(4 * torch.eye(heads, N_RELATIONS))
        self.planner = Planner(dim, heads)
        self.summary = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, dim + 2 * (dim // 4)), nn.ReLU())

    def forward(self, obs: dict[str, Tensor]) -> Tensor:
        """(B, features_dim) features of what stable-baselines3 makes of an observation: states one-hot."""
        return self.plan(obs["memory"].long(), *(obs[key].argmax(-1).flatten() for key in ("state", "goal")))

    def plan(self, memory: Tensor, state: Tensor, goal: Tensor) -> Tensor:
        """(B, features_dim) features of int64 memories (B, M, 3), states (B,) and goals (B,); a goal of -1 is none."""
        with torch.autocast(memory.device.type, torch.bfloat16, enabled=self.low_precision):
            memory = F.pad(deduplicate(memory), (0, 0, 1, 0), value=-1)  # the null token, for reading nothing
            source, action, end = memory.unbind(2)
            kept, state, goal = source >= 0, state[:, None], goal[:, None]
            leaves, enters = (source == state) & kept, (end == state) & kept
            flags = torch.stack([leaves, enters, (source == goal) & kept, (end == goal) & kept, source == end], 2)
            x = self.embed_action(torch.where(kept, action, N_ACTIONS)) + self.embed_flags(flags.float())
            bias = self._bias(source, end)
            for _ in range(self.iterations):
                x = self.planner(x, bias)
            # Not negative, so that 0 stands for no memory.
            overall, *moves = self.summary(x).split([x.shape[2], x.shape[2] // 4, x.shape[2] // 4], 2)
            pooled = [(overall * kept[..., None]).amax(1)]
            by_action = action[..., None] == torch.arange(N_ACTIONS, device=action.device)
            for move, touches in zip(moves, (leaves, enters), strict=True):
                spoken = by_action & touches[..., None]
                pooled.append((move[:, :, None] * spoken[..., None]).amax(1).flatten(1))
            return torch.cat(pooled, 1).float()

    def _bias(self, source: Tensor, end: Tensor) -> Tensor:
        """(B * heads, N, N) attention bias of memories that share states (B, N); padding is not read."""
        source, end = source.int(), end.int()  # compared faster than int64
        touch = [a[:, :, None] == b[:, None] for a in (source, end) for b in (source, end)]
        related = torch.stack(touch, 1).flatten(2).to(torch.bfloat16 if self.low_precision else torch.float32)
        bias = (self.relation_bias.to(related.dtype) @ related).unflatten(2, (source.shape[1], -1))
        padding = source < 0
        padding[:, 0] = False
        return bias.masked_fill(padding[:, None, None], -1e4).flatten(0, 1)


def max_steps(radius: int) -> int:
    """Most steps to a goal: 15 at 19 locations, 30 at 37."""
    return 15 * max(1, radius - 1)


def many_goals(rooms: RoomConfig, episode_steps: int = 300, progress_reward: float = 0.0) -> ManyGoals:
    """Many goals in one room, without the memory in the observation."""
    env = TimeLimit(HexRoomEnv(rooms), max_steps(rooms.radius))
    return ManyGoals(env, episode_steps, progress_reward)


class EPNAgent(PolicyAgent):
    """Acts from its last 200 transitions by a policy trained on many rooms; see `PolicyAgent` for its arguments.

    By default it draws its actions: one that takes the likeliest may go round in circles.
    Without a goal it seeks one that it has not seen: a state outside its memory.
    """

    architecture = "epn"

    def __init__(
        self, policy: ActorCriticPolicy, config: dict[str, Any], deterministic: bool = False, seed: int | None = None
    ) -> None:
        super().__init__(policy, config, deterministic, seed)
        self.memory: deque[tuple[int, int, int]] = deque(maxlen=CAPACITY)

    @staticmethod
    def policy_options(config: dict[str, Any]) -> dict[str, Any]:
        return {
            "features_extractor_class": EPNTorso,
            "features_extractor_kwargs": config["torso"],
            "net_arch": {"pi": [config["hidden"]], "vf": [config["hidden"]]},
            "activation_fn": nn.ReLU,
        }

    @staticmethod
    def observation_space(config: dict[str, Any]) -> spaces.Dict:
        rooms = RoomConfig.random_wall(2, states=tuple(range(config["n_states"])))
        return EpisodicMemory(many_goals(rooms), CAPACITY).observation_space  # type: ignore[return-value]

    def reset(self, obs: Observation, info: Info) -> None:
        rows = np.asarray(info.get("memory_bank", ()), np.int64).reshape(-1, 3)
        self.memory = deque(map(tuple, rows[rows[:, 1] >= 0].tolist()), maxlen=CAPACITY)

    def observe(self, obs: Observation, action: int, next_obs: Observation, info: Info) -> None:
        """Remember the transition; where `ManyGoals` moved the agent on, `info["end_state"]` says where it ended."""
        self.memory.append((state_of(obs["state"]), int(action), state_of(end_of(next_obs, info))))

    def _seen(self, obs: Observation) -> tuple[list[tuple[int, int, int]], int, int]:
        return list(self.memory), state_of(obs["state"]), state_of(obs["goal"]) if "goal" in obs else -1

    @staticmethod
    def _logits(policy: ActorCriticPolicy, seen: list[tuple[list[tuple[int, int, int]], int, int]]) -> Tensor:
        memories = torch.from_numpy(pad([np.array(memory, np.int64).reshape(-1, 3) for memory, *_ in seen]))
        ends = torch.tensor([[state, goal] for _, state, goal in seen]).T
        return policy.action_net(_last_layer(policy, memories, *ends))

    @torch.inference_mode()
    def activations(self, memory: np.ndarray, state: np.ndarray, goal: np.ndarray) -> np.ndarray:
        """What the policy's head reads as it chooses an action.

        Args:
            memory: (B, M, 3) int, transitions; rows of -1 are padding.
            state: (B,) int, where the agent stands.
            goal: (B,) int, -1 for none.

        Returns:
            (B, hidden) float32.
        """
        parts = [torch.from_numpy(np.asarray(part, np.int64)).split(TOGETHER) for part in (memory, state, goal)]
        return torch.cat([_last_layer(self.policy, *some) for some in zip(*parts, strict=True)]).cpu().numpy()

    def fill_memories(self, rooms: Sequence[Room], n_steps: int = CAPACITY, seed: int = 0) -> list[np.ndarray]:
        """Let the agent walk to many goals in each room, and return what it then remembers.

        Args:
            rooms: of any radius and states.
            n_steps: how far to walk; where each goal ends, the agent starts anew elsewhere.
            seed: of starts, goals and draws.

        Returns:
            For each room its last transitions, (n, 3) int64 with n at most 200, to be given as
            `info["memory_bank"]`.
        """
        agents, _ = walk(self, rooms, n_steps, seed)
        return [np.array(agent.memory, np.int64).reshape(-1, 3) for agent in agents]


def _last_layer(policy: ActorCriticPolicy, memory: Tensor, state: Tensor, goal: Tensor) -> Tensor:
    """(B, hidden) what the head of the policy reads; arguments as of `EPNTorso.plan`, on any device."""
    features = policy.features_extractor.plan(*(part.to(policy.device) for part in (memory, state, goal)))  # type: ignore[operator]
    return policy.mlp_extractor.forward_actor(features)


class Walk(Episode):
    """An episode of many goals; `results` holds what `ManyGoals` says of each goal."""

    def __init__(self, setup: Setup, agent: EPNAgent) -> None:
        self.results: list[dict[str, Any]] = []
        super().__init__(setup, agent, memory_bank=np.empty((0, 3), np.int64))

    def step(self) -> None:
        super().step()
        if "goal_result" in self.info:
            self.results.append(self.info["goal_result"])


def walk(agent: EPNAgent, rooms: Sequence[Room], n_steps: int, seed: int) -> tuple[list[EPNAgent], list[list[dict]]]:
    """Walk to many goals in each room, all rooms in step.

    Returns:
        Of each room its agent and what `ManyGoals` said of each goal.
    """
    walks = []
    for i, room in enumerate(rooms):
        family = RoomConfig.random_wall(room.radius, states=tuple(range(room.states.max() + 1)))
        setup = Setup(partial(many_goals, family, n_steps), seed + i, options={"room": room})
        walks.append(Walk(setup, agent.spawn(seed + i)))
    run_in_step(walks)
    return [one.agent for one in walks], [one.results for one in walks]  # type: ignore[misc]
