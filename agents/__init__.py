"""Agents: the ESWM agent, its memory bank and plans, and what it is compared with."""

from eswm_gym.agents.base import Agent
from eswm_gym.agents.eswm_agent import ESWMAgent
from eswm_gym.agents.memory_bank import MemoryBank
from eswm_gym.agents.planning import Plan, TransitionTable, dijkstra, imagine_tables

__all__ = ["Agent", "ESWMAgent", "MemoryBank", "Plan", "TransitionTable", "dijkstra", "imagine_tables"]
