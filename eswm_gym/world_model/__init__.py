"""The Episodic Spatial World Model: architectures, training, pretrained weights. Needs no environment library."""

from eswm_gym.world_model.emwm import EMWM, EMWMConfig
from eswm_gym.world_model.eswm import ACTION, END, ESWM, MASKED, SOURCE, EncodedBank, ModelConfig, Prediction
from eswm_gym.world_model.lookup import Lookup, PathIntegrator
from eswm_gym.world_model.pretrained import (
    CheckpointError,
    available,
    load_model,
    load_pretrained,
    save_model,
)
from eswm_gym.world_model.recurrent import Recurrent, RecurrentConfig
from eswm_gym.world_model.tem_t import TEMT, TEMTConfig
from eswm_gym.world_model.transformer import Transformer, TransformerConfig
from eswm_gym.world_model.view_transformer import ViewPrediction, ViewTransformer, ViewTransformerConfig

__all__ = [
    "ACTION",
    "END",
    "EMWM",
    "ESWM",
    "MASKED",
    "SOURCE",
    "TEMT",
    "CheckpointError",
    "EMWMConfig",
    "EncodedBank",
    "Lookup",
    "ModelConfig",
    "PathIntegrator",
    "Prediction",
    "Recurrent",
    "RecurrentConfig",
    "TEMTConfig",
    "Transformer",
    "TransformerConfig",
    "ViewPrediction",
    "ViewTransformer",
    "ViewTransformerConfig",
    "available",
    "load_model",
    "load_pretrained",
    "save_model",
]
