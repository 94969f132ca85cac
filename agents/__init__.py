"""Agents: the ESWM agent, its memory bank and plans, and what it is compared with."""

from eswm_gym.agents.base import Agent
from eswm_gym.agents.config import AgentConfig
from eswm_gym.agents.eswm_agent import ESWMAgent
from eswm_gym.agents.indoor_agent import IndoorAgent
from eswm_gym.agents.knowledge import Knowledge
from eswm_gym.agents.large_map import LargeMap, Move, Wall
from eswm_gym.agents.latent_map import LatentMap, latent_maps
from eswm_gym.agents.memory_bank import MemoryBank
from eswm_gym.agents.minigrid_agent import MiniGridAgent
from eswm_gym.agents.open_world import OpenWorldKnowledge
from eswm_gym.agents.places import Place, PlaceMap
from eswm_gym.agents.planning import Plan, TransitionTable, follow, imagine_tables, search
from eswm_gym.agents.symbols import SymbolKnowledge
from eswm_gym.agents.uncertain_views import UncertainViews
from eswm_gym.agents.views import ViewKnowledge

__all__ = [
    "Agent",
    "AgentConfig",
    "ESWMAgent",
    "IndoorAgent",
    "Knowledge",
    "LargeMap",
    "LatentMap",
    "MemoryBank",
    "MiniGridAgent",
    "Move",
    "OpenWorldKnowledge",
    "Place",
    "PlaceMap",
    "Plan",
    "SymbolKnowledge",
    "TransitionTable",
    "UncertainViews",
    "ViewKnowledge",
    "Wall",
    "follow",
    "imagine_tables",
    "latent_maps",
    "search",
]
