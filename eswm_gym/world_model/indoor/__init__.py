"""ESWM over camera views (paper: "ProcThor Experiments"): frozen encoders, the model, its training."""

from eswm_gym.world_model.indoor.model import IndoorBank, IndoorConfig, IndoorModel, Memories
from eswm_gym.world_model.indoor.pose_mixtures import PoseMixture
from eswm_gym.world_model.indoor.saving import load_indoor, save_indoor
from eswm_gym.world_model.indoor.vision import DINO, EfficientNetLite0, Encoder, Reduction

__all__ = [
    "DINO",
    "EfficientNetLite0",
    "Encoder",
    "IndoorBank",
    "IndoorConfig",
    "IndoorModel",
    "Memories",
    "PoseMixture",
    "Reduction",
    "load_indoor",
    "save_indoor",
]
