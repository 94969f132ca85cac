"""ESWM-T: a transformer over transitions without positional encoding, so that a bank is a set.

Paper: "Model Selection and Training". The paper's model is a stack of transformer blocks over the bank and one query,
with a logit for each state. Our blocks always normalise queries and keys, have a null token (`Block`), and are trained
with Muon. Optional additions of ours are queries that read the bank while the bank does not read them (`cross`),
attention that sees which transitions share a state (`relational`), a read-out that points at states of the bank
(`pointer`), blocks that are applied several times (`loops`), weights that compare states at first (`aligned`), and
actions of which a model knows nothing but which transitions share them (`codes`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from eswm_gym.checks import require_choices
from eswm_gym.rooms.transitions import ACTION, END, SOURCE
from eswm_gym.world_model.blocks import (
    N_RELATIONS,
    Block,
    KeysValues,
    Reads,
    bank_layers,
    padding_mask,
    read_bank,
    read_queries,
    relations,
)
from eswm_gym.world_model.codecs import CODECS, CodecName, IntegerCodec, NameCodec
from eswm_gym.world_model.eswm import ESWM, EncodedBank, ModelConfig
from eswm_gym.world_model.predictions import Prediction
from eswm_gym.world_model.tokens import TokenModel

SCORE_CAP = 15.0


@dataclass(frozen=True)
class TransformerConfig(ModelConfig):
    """Shape of the transformer.

    Attributes:
        heads: attention heads of each block.
        loops: how often the stack of blocks is applied, weights shared: depth without parameters.
        query_attention: "joint", as in the paper: the bank and one query form one sequence; or "cross": queries read
            the bank and nothing reads them, so that a bank is encoded once for any number of queries.
        relational: give attention a bias and a value for which states two transitions share.
        readout: "classes", as in the paper: one logit for each state of the vocabulary; or "pointer": a score for the
            source and the end of each memory, so that a state's logit comes from the memories that hold it.
        state_embeddings: embed states. Without, a relational pointer model knows states by their equality
            alone: renaming the states of a room cannot change its answers, and any vocabulary will do.
        codec: states are "integer" symbols or "binary" numbers.
        aligned: start with heads that find the transitions which share a state; see `Transformer.align`.
        context: how many of the last rows of a bank are not a set but a walk to where all queries start: what tells
            locations with one state apart. Each has a learned embedding of its place in the walk.
        usual_memories: how many memories the largest banks of training hold. Logits of attention over n memories are
            multiplied by log(1 + n) / log(1 + usual_memories), because attention spreads over more tokens in larger
            banks (Chiang and Cholak, 2022, "Overcoming a Theoretical Limitation of Self-Attention"). With joint
            attention, n counts the query too. 0: logits are not multiplied.
        codes: how many of the actions, the last ones, are exchangeable codes: what such an action does has to be found
            out from the bank. Attention then also sees which transitions share an action.
    """

    heads: int = 4
    loops: int = 1
    query_attention: Literal["joint", "cross"] = "cross"
    relational: bool = True
    readout: Literal["classes", "pointer"] = "pointer"
    state_embeddings: bool = True
    codec: CodecName = "integer"
    aligned: bool = True
    context: int = 0
    usual_memories: int = 0
    codes: int = 0

    def __post_init__(self) -> None:
        require_choices(
            query_attention=(self.query_attention, ("joint", "cross")),
            readout=(self.readout, ("classes", "pointer")),
            codec=(self.codec, tuple(CODECS)),
        )
        if self.dim % self.heads:
            raise ValueError(f"dim {self.dim} is not a multiple of heads {self.heads}")
        if not self.state_embeddings and not (self.relational and self.readout == "pointer"):
            raise ValueError("a model without state embeddings must be relational with readout='pointer'")
        if self.codes and (not 0 < self.codes < self.n_actions or self.state_embeddings):
            raise ValueError(
                f"codes must lie between 0 and n_actions {self.n_actions}, in a model without state embeddings, "
                f"got {self.codes}"
            )
        if self.codec == "binary" and not self.state_embeddings:
            raise ValueError("a binary codec embeds states")
        if not 0 <= self.usual_memories <= self.max_memories:
            raise ValueError(
                f"usual_memories must lie between 0 and max_memories {self.max_memories}, got {self.usual_memories}"
            )
        if self.context and not (0 < self.context <= self.max_memories and self.query_attention == "cross"):
            raise ValueError(f"context must lie between 0 and max_memories, with cross attention, got {self.context}")


class Cache(NamedTuple):
    """What cross attention keeps of B banks.

    Attributes:
        keys_values: of the bank's tokens in each block.
        tokens: (B, N, dim) after the last block, normalised.
    """

    keys_values: list[KeysValues]
    tokens: Tensor


class Transformer(TokenModel):
    """ESWM-T. See TransformerConfig for its options."""

    config: TransformerConfig

    def __init__(self, config: TransformerConfig) -> None:
        heads = config.readout == "classes"
        if config.codes:
            codec: IntegerCodec = NameCodec(config.n_states, config.dim)
        elif config.state_embeddings:
            codec = CODECS[config.codec](config.n_states, config.dim, heads=heads)
        else:
            codec = IntegerCodec(config.n_states, config.dim, embeddings=False, heads=heads)
        super().__init__(config, codec, config.codes)
        self.n_relations = config.relational * (N_RELATIONS + bool(config.codes))
        self.loops = config.loops
        self.blocks = nn.ModuleList(Block(config.dim, config.heads, self.n_relations) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.dim, bias=False)
        # With codes: one logit more, of a code that no memory holds, before that of "I don't know".
        self.action_head = nn.Linear(config.dim, self.embed_action.num_embeddings)
        if config.readout == "pointer":
            self.point_from = nn.Linear(config.dim, 4 * config.dim, bias=False)
            self.point_to = nn.Linear(config.dim, 2 * config.dim, bias=False)
            self.unknown = nn.Linear(config.dim, 2)
        if config.codes:
            self.point_from_action = nn.Linear(config.dim, config.dim, bias=False)
            self.point_to_action = nn.Linear(config.dim, config.dim, bias=False)
        if config.context:
            self.place = nn.Parameter(torch.zeros(config.context, config.dim))
        if config.aligned and config.state_embeddings:
            self.align()

    @torch.no_grad()
    def align(self) -> None:
        """Begin with heads that find the transitions which share a state with the one that reads (ours).

        A state has one code as source and as end, each in a third of its own of the embedding; the action has the
        last third. The queries and the keys of a head are one random projection of two of these thirds. Training is
        free to change all of it, but need not first discover, state by state, that two embeddings mean one place.
        """
        heads, dim = self.config.heads, self.config.dim
        sources, ends, actions = self.codec.embed_source.weight, self.codec.embed_end.weight, self.embed_action.weight
        width = sources.shape[1]  # a binary codec embeds each bit in a part of the token
        third = width // 3
        source, end, action = (slice(i * third, (i + 1) * third) for i in range(3))
        codes, actions = sources[:, :third].clone(), actions.view(-1, width)
        for table, own, code in (
            (sources, source, codes),
            (ends, end, codes),
            (actions, action, actions[:, action].clone()),
        ):
            table.zero_()[:, own] = math.sqrt(3) * code
        looked_for = ((source, end), (end, source), (source, source), (end, end))
        for block in self.unrolled[: self.config.layers]:
            # (heads, dimensions of a head, parts of a token, width)
            query, key = (w.weight.zero_().view(heads, -1, dim // width, width) for w in (block.query, block.key))
            for head in range(heads):
                mine, theirs = looked_for[head % N_RELATIONS]
                projection = nn.init.orthogonal_(torch.empty(dim // heads, dim // width * third))
                query[head, ..., mine] = key[head, ..., theirs] = projection.unflatten(1, (-1, third))

    @torch.no_grad()
    def starts_from(self, other: ESWM) -> bool:
        """Take over the weights of a model of the same shape, or of one that lacks the context alone; or, if this one
        has codes and embeds no states, of one without codes whose actions are the first ones of this model. Say
        whether it could."""
        mine, theirs = self.config, other.config
        if super().starts_from(other):
            return True
        if not isinstance(theirs, TransformerConfig):
            return False
        if mine.context and replace(mine, context=0) == theirs:
            self.load_state_dict({"place": torch.zeros_like(self.place), **other.state_dict()})
            return True
        if mine.state_embeddings or not mine.codes or theirs.codes:
            return False
        free = {"n_states", "n_actions", "max_memories", "codes"}
        if any(value != getattr(theirs, name) for name, value in mine.to_dict().items() if name not in free):
            return False
        if theirs.n_actions > self.n_named:
            return False
        own = self.state_dict()
        for name, given in other.state_dict().items():
            if name.endswith("relation_bias"):
                own[name][:N_RELATIONS], own[name][N_RELATIONS:] = given, own[name][N_RELATIONS:] / 4
            elif name.endswith("relation_value.weight"):
                own[name].unflatten(1, (mine.heads, -1))[..., :N_RELATIONS] = given.unflatten(1, (mine.heads, -1))
            elif name.startswith(("embed_action", "action_head")):  # its last row is of what is not known
                own[name][: theirs.n_actions], own[name][-1] = given[:-1], given[-1]
            else:
                own[name].copy_(given)
        return True

    @property
    def unrolled(self) -> list[Block]:
        """The blocks in the order in which tokens pass them: all of them, `loops` times."""
        return [*self.blocks] * self.loops  # type: ignore[list-item]

    def _reads(self, reader: Tensor, read: Tensor, dtype: torch.dtype) -> Reads:
        """How the tokens of transitions (B, T, 3) read those of others (B, N, 3)."""
        padding = (read[..., SOURCE] < 0) & (read[..., END] < 0)  # a query has at least one of them
        mask = padding_mask(padding, dtype)
        related = relations(reader, read, self.n_relations).to(dtype) if self.n_relations else None
        if not self.config.usual_memories:
            return Reads(mask, related)
        size = 1 + (~padding).sum(1)  # (B,) with the null token
        sharper = (size.log() / math.log(1 + self.config.usual_memories)).to(dtype).view(-1, 1, 1, 1)
        return Reads(mask, related, sharper)

    def encode(self, memories: Tensor) -> EncodedBank:
        if self.config.query_attention == "joint":
            self.check_length(memories)
            return EncodedBank(memories)
        x = self._embed_bank(memories)
        keys_values, x = read_bank(self.unrolled, x, self._reads(memories, memories, x.dtype))
        return EncodedBank(memories, Cache(keys_values, self.norm(x)))

    def forward(self, memories: Tensor, query: Tensor) -> Prediction:
        if self.config.query_attention == "joint":
            return self.predict(self.encode(memories), query)
        # As `encode` and `predict`, in one pass through the blocks.
        x, n = torch.cat([self._embed_bank(memories), self.embed(query)], 1), memories.shape[1]
        reads = self._reads(torch.cat([memories, query], 1), memories, x.dtype)
        x = self.norm(read_bank(self.unrolled, x, reads, n)[1])
        return self._read_out(x[:, n:], x[:, :n], memories)

    def _embed_bank(self, memories: Tensor) -> Tensor:
        """(B, N, dim) tokens of banks, for cross attention."""
        self.check_length(memories)
        x = self.embed(memories)
        if context := self.config.context:
            if x.shape[1] < context:
                raise ValueError(f"the last {context} rows of a bank are the context, but there are {x.shape[1]} rows")
            x = torch.cat([x[:, :-context], x[:, -context:] + self.place.to(x.dtype)], 1)
        return x

    def layers(self, bank: EncodedBank, query: Tensor) -> Iterator[Tensor]:
        if self.config.query_attention == "joint":
            for x in self._joint_layers(bank.memories, query):
                yield x[:, -1].view(*query.shape[:2], -1)  # of the last token, the query's
            return
        x = self.embed(query)
        yield from read_queries(self.unrolled, bank.cache.keys_values, x, self._reads(query, bank.memories, x.dtype))

    def read_out(self, x: Tensor, bank: EncodedBank[Cache]) -> Prediction:
        return self._read_out(self.norm(x), bank.cache.tokens, bank.memories)

    def predict(self, bank: EncodedBank, query: Tensor) -> Prediction:
        if self.config.query_attention == "cross":
            *_, x = self.layers(bank, query)
            return self.read_out(x, bank)
        *_, x = self._joint_layers(bank.memories, query)
        x = self.norm(x)
        memories = bank.memories.repeat_interleave(query.shape[1], 0)
        prediction = self._read_out(x[:, -1:], x[:, :-1], memories)
        return Prediction(*(logits.view(*query.shape[:2], -1) for logits in prediction))

    def _joint_layers(self, memories: Tensor, query: Tensor) -> Iterator[Tensor]:
        """The paper's attention: each query forms one sequence with its bank, and every token reads every token.

        Yields:
            (B * Q, N + 1, dim) the tokens after each block, the query's last.
        """
        memories = memories.repeat_interleave(query.shape[1], 0)  # (B * Q, N, 3)
        sequence = torch.cat([memories, query.flatten(0, 1)[:, None]], 1)  # (B * Q, N + 1, 3)
        x = self.embed(sequence)
        for _, after in bank_layers(self.unrolled, x, self._reads(sequence, sequence, x.dtype)):
            yield after

    def _read_out(self, x: Tensor, memory: Tensor, memories: Tensor) -> Prediction:
        """Logits from query tokens x (B, Q, dim), memory tokens (B, N, dim) and the bank (B, N, 3)."""
        if self.config.readout == "classes":
            return self.classify(x)
        # The heads h of source and end each score two slots s of every memory n: its source and its end.
        pointers = self.point_from(x).unflatten(-1, (2, 2, -1))  # (B, Q, h, s, dim)
        slots = self.point_to(memory).unflatten(-1, (2, -1))  # (B, N, s, dim)
        scores = torch.einsum("bqhsd,bnsd->hbqns", pointers, slots).float() / math.sqrt(self.config.dim)
        states = memories[:, :, ::2]  # (B, N, s)
        scores = _soft_cap(scores).masked_fill((states < 0)[None, :, None], -1e4).flatten(3)  # (h, B, Q, N * s)
        unknown = _soft_cap(self.unknown(x).float()).movedim(-1, 0)[..., None]  # (h, B, Q, 1)
        # Log-sum-exp over the slots of each state; a state that no memory holds gets almost nothing.
        peak = torch.cat([scores, unknown], -1).amax(-1, keepdim=True).detach()
        holds = F.one_hot(states.flatten(1).clamp(min=0), self.config.n_states).to(scores.dtype)  # (B, N * s, n_states)
        per_state = ((scores - peak).exp() @ holds + 1e-20).log() + peak  # (h, B, Q, n_states)
        source, end = torch.cat([per_state, unknown], -1)
        action = self._action_codes(x, memory, memories) if self.config.codes else self.action_head(x)
        return Prediction(source, action, end)

    def _action_codes(self, x: Tensor, memory: Tensor, memories: Tensor) -> Tensor:
        """(B, Q, n_actions + 1) logits: a code's from the memories that hold it, and as much as any code has."""
        named, absent, unknown = self.action_head(x).float().split([self.n_named, 1, 1], -1)
        scores = torch.einsum("bqd,bnd->bqn", self.point_from_action(x), self.point_to_action(memory)).float()
        code = memories[..., ACTION] - self.n_named  # (B, N)
        scores = _soft_cap(scores / math.sqrt(self.config.dim)).masked_fill((code < 0)[:, None], -1e4)
        absent = _soft_cap(absent)
        peak = torch.cat([scores, absent], -1).amax(-1, keepdim=True).detach()
        holds = F.one_hot(code.clamp(min=0), self.config.codes).to(scores.dtype)
        codes = ((scores - peak).exp() @ holds + (absent - peak).exp()).log() + peak
        return torch.cat([named, codes, unknown], -1)


def _soft_cap(scores: Tensor) -> Tensor:
    """Keep pointer scores within +-SCORE_CAP, so that the 1e-20 in the log-sum-exp never hides a state's gradient."""
    return SCORE_CAP * (scores / SCORE_CAP).tanh()
