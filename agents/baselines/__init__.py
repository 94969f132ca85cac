"""Agents to compare with; each has the interface of `Agent`."""

from eswm_gym.agents.baselines.a2c_lstm import A2CLSTMAgent
from eswm_gym.agents.baselines.blind_explorer import BlindFrontierAgent
from eswm_gym.agents.baselines.cscg import CSCGAgent
from eswm_gym.agents.baselines.epn import EPNAgent
from eswm_gym.agents.baselines.explorers import LatticeFrontierAgent, OracleExplorer
from eswm_gym.agents.baselines.graph_agents import MemoryGraphAgent, PathIntegrationAgent
from eswm_gym.agents.baselines.grid_agents import GridOracle, GridOracleExplorer, ViewGraphAgent
from eswm_gym.agents.baselines.map_only import MapOnly
from eswm_gym.agents.baselines.overlap_only import OverlapOnly
from eswm_gym.agents.baselines.pose_graph import PoseGraph
from eswm_gym.agents.baselines.random_agent import RandomAgent

__all__ = [
    "A2CLSTMAgent",
    "BlindFrontierAgent",
    "CSCGAgent",
    "EPNAgent",
    "GridOracle",
    "GridOracleExplorer",
    "LatticeFrontierAgent",
    "MapOnly",
    "MemoryGraphAgent",
    "OracleExplorer",
    "OverlapOnly",
    "PathIntegrationAgent",
    "PoseGraph",
    "RandomAgent",
    "ViewGraphAgent",
]
