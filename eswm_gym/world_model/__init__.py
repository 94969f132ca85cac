"""The Episodic Spatial World Model: architectures, training, pretrained weights. Needs no environment library."""

from eswm_gym.files import CheckpointError
from eswm_gym.rooms.transitions import ACTION, END, MASKED, SOURCE
from eswm_gym.world_model.emwm import EMWM, EMWMConfig
from eswm_gym.world_model.eswm import ESWM, EncodedBank, ModelConfig
from eswm_gym.world_model.lookup import Lookup, PathIntegrator
from eswm_gym.world_model.numbered import NumberedActions
from eswm_gym.world_model.overlap_model import OverlapConfig, OverlapModel
from eswm_gym.world_model.predictions import Answer, Imagined, Prediction, ViewPrediction
from eswm_gym.world_model.pretrained import (
    available,
    load_model,
    load_pretrained,
    save_model,
)
from eswm_gym.world_model.recurrent import Recurrent, RecurrentConfig
from eswm_gym.world_model.tem_t import TEMT, TEMTConfig
from eswm_gym.world_model.transformer import Transformer, TransformerConfig
from eswm_gym.world_model.view_model import ViewModel
from eswm_gym.world_model.view_transformer import ViewTransformer, ViewTransformerConfig

__all__ = [
    "ACTION",
    "END",
    "EMWM",
    "ESWM",
    "MASKED",
    "SOURCE",
    "TEMT",
    "Answer",
    "CheckpointError",
    "EMWMConfig",
    "EncodedBank",
    "Imagined",
    "Lookup",
    "ModelConfig",
    "NumberedActions",
    "OverlapConfig",
    "OverlapModel",
    "PathIntegrator",
    "Prediction",
    "Recurrent",
    "RecurrentConfig",
    "TEMTConfig",
    "Transformer",
    "TransformerConfig",
    "ViewModel",
    "ViewPrediction",
    "ViewTransformer",
    "ViewTransformerConfig",
    "available",
    "load_model",
    "load_pretrained",
    "save_model",
]
