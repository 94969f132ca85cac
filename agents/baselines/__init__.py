"""Agents to compare with; each has the interface of `Agent`."""

from eswm_gym.agents.baselines.graph_agents import MemoryGraphAgent, PathIntegrationAgent
from eswm_gym.agents.baselines.random_agent import RandomAgent

__all__ = ["MemoryGraphAgent", "PathIntegrationAgent", "RandomAgent"]
