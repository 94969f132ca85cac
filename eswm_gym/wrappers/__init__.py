"""Wrappers that hand agents what they need through the observation."""

from eswm_gym.wrappers.memory_bank_observation import MemoryBankObservation

__all__ = ["MemoryBankObservation"]
