"""Gymnasium worlds and a pretrained spatial world model."""

from importlib.util import find_spec

__version__ = "0.1.0"

if find_spec("gymnasium"):  # a training server has torch and NumPy only; rooms and world_model work there too
    from eswm_gym.envs.registration import register_envs

    register_envs()
