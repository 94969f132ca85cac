"""Wrappers that hand agents what they need through the observation, or change what an episode is."""

from eswm_gym.wrappers.action_mask_observation import ActionMaskObservation
from eswm_gym.wrappers.discrete_states import AbsoluteMoves, DiscreteStates, Poses
from eswm_gym.wrappers.disturbances import MovingWalls, SharedState, Slips, WrongStates
from eswm_gym.wrappers.episodic_memory import EpisodicMemory
from eswm_gym.wrappers.fixed_room import FixedRoom
from eswm_gym.wrappers.for_sb3 import for_sb3
from eswm_gym.wrappers.history import History
from eswm_gym.wrappers.many_goals import ManyGoals
from eswm_gym.wrappers.memory_bank_observation import MemoryBankObservation
from eswm_gym.wrappers.minigrid_views import MiniGridViews
from eswm_gym.wrappers.view_errors import ViewErrors

__all__ = [
    "AbsoluteMoves",
    "ActionMaskObservation",
    "DiscreteStates",
    "EpisodicMemory",
    "FixedRoom",
    "History",
    "ManyGoals",
    "MemoryBankObservation",
    "MiniGridViews",
    "MovingWalls",
    "Poses",
    "SharedState",
    "Slips",
    "ViewErrors",
    "WrongStates",
    "for_sb3",
]
