"""What models of egocentric views have in common: what an agent asks besides where moves lead."""

from __future__ import annotations

import torch
from torch import Tensor

from eswm_gym.rooms.grid import LOOK, N_CELLS
from eswm_gym.rooms.transitions import MASKED
from eswm_gym.world_model.codecs import ViewCodec
from eswm_gym.world_model.eswm import ESWM, EncodedBank
from eswm_gym.world_model.predictions import Imagined


class ViewModel(ESWM):
    """A model of views. Memories are (B, N, 51) and queries (B, Q, 51) int: 25 cells, the action, 25 cells.

    The action of a query may also be `LOOK`: it asks for the given view as it is without errors.
    """

    codec: ViewCodec

    @torch.inference_mode()
    def look(self, bank: EncodedBank, views: Tensor) -> Imagined:
        """What one sees where views (B, Q, 25) were seen, without the errors that they may have."""
        look = torch.full_like(views[..., :1], LOOK)
        return self.predict(bank, torch.cat([views, look, torch.full_like(views, MASKED)], 2)).imagined()

    def is_blocked(self, before: Tensor, after: Tensor) -> Tensor:
        """(...) bool, whether a step ahead led nowhere, by the views (..., 25) before and after it: something that the
        view before does not show may have been in the way."""
        return (before == after).all(-1)

    def contradicted(self, memories: Tensor, seen: Tensor) -> Tensor:
        """(B, N, 2, 25) bool, which cells of the source and end views of memories (B, N, 51) the end of a transition
        (B, 51) contradicts; none where the model cannot tell."""
        return memories.new_zeros(*memories.shape[:2], 2, N_CELLS, dtype=torch.bool)
