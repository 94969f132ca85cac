"""What architectures over transitions share: a transition becomes a token, a token becomes three predictions."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from eswm_gym.world_model.codecs import IntegerCodec
from eswm_gym.world_model.eswm import ESWM, ModelConfig
from eswm_gym.world_model.predictions import Prediction


class TokenModel(ESWM):
    """Embeds each transition as one token, the sum of its three components over sqrt(3).

    Args:
        config: of the architecture.
        codec: how states are embedded and read out.
        codes: how many of the actions, the last ones, are codes that have one embedding and no logits in the head.
    """

    codec: IntegerCodec
    action_head: nn.Linear

    def __init__(self, config: ModelConfig, codec: IntegerCodec, codes: int = 0) -> None:
        super().__init__(config)
        self.codec = codec
        self.n_named = config.n_actions - codes
        # One row for each named action, one for all codes if there are any, and the last one for "masked".
        self.embed_action = nn.Embedding(self.n_named + bool(codes) + 1, config.dim)

    def embed(self, transitions: Tensor) -> Tensor:
        """(B, N, dim) tokens of (B, N, 3) transitions."""
        source, action, end = transitions.unbind(2)
        masked = self.embed_action.num_embeddings - 1
        row = action.clamp(max=self.n_named) if self.n_named < masked else action
        x = self.codec.embed(source, end) + self.embed_action(torch.where(action < 0, masked, row))
        return to_autocast(x / math.sqrt(3))

    def classify(self, x: Tensor) -> Prediction:
        """One logit for each class from tokens (B, Q, dim), where codec and model have heads."""
        source, end = self.codec.read_out(x)
        return Prediction(source, self.action_head(x), end)


def to_autocast(x: Tensor) -> Tensor:
    """Tokens in the precision of autocast where that is on: embeddings alone would leave them in float32."""
    device = x.device.type
    return x.to(torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else x


def end_only(end: Tensor, config: ModelConfig) -> Prediction:
    """The prediction of a model that completes end states alone: of sources and actions it says nothing."""
    shape = end.shape[:2]
    return Prediction(end.new_zeros(*shape, config.n_states + 1), end.new_zeros(*shape, config.n_actions + 1), end)


def lengths(memories: Tensor) -> Tensor:
    """(B,) int, how many rows of (B, N, 3) banks are not padding."""
    return (memories[..., 0] >= 0).sum(1)
