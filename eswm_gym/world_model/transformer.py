"""ESWM-T: a transformer over transitions without positional encoding, so that a bank is a set.

Paper: "Model Selection and Training". Five things are ours and optional: queries that read the bank while the
bank does not read them (`cross`), attention that sees which transitions touch (`relational`), a read-out that
points at states of the bank (`pointer`), blocks that are applied several times over (`loops`), and weights that at
first compare states (`aligned`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from eswm_gym.options import require_choices
from eswm_gym.world_model.codecs import build_codec
from eswm_gym.world_model.eswm import END, SOURCE, EncodedBank, ModelConfig, Prediction
from eswm_gym.world_model.tokens import TokenModel

if TYPE_CHECKING:
    from eswm_gym.world_model.tem_t import TEMTConfig
    from eswm_gym.world_model.view_transformer import ViewTransformerConfig

N_RELATIONS = 4
SCORE_CAP = 15.0


@dataclass(frozen=True)
class TransformerConfig(ModelConfig):
    """Shape of the transformer.

    Attributes:
        heads: attention heads of each block.
        loops: how often the stack of blocks is applied, weights shared: depth without parameters.
        query_attention: "joint", the paper's: the bank and one query form one sequence; or "cross": queries read
            the bank and nothing reads them, so that a bank is encoded once for any number of queries.
        relational: give attention a bias and a value for which states two transitions share.
        readout: "classes", the paper's: one logit for each state of the vocabulary; or "pointer": a score for the
            source and the end of each memory, so that a state's logit comes from the memories that hold it.
        state_embeddings: embed states. Without, a relational pointer model knows states by their equality
            alone: renaming the states of a room cannot change its answers, and any vocabulary will do.
        codec: states are "integer" symbols or "binary" numbers.
        aligned: start with heads that find the transitions which share a state; see `Transformer.align`.
        context: how many of the last rows of a bank are not a set but a walk to where all queries start: what tells
            locations with one state apart. Each has a learned embedding of its place in the walk.
        usual_memories: how many memories the largest banks of training hold. Attention over n memories is sharpened by
            log(1 + n) / log(1 + usual_memories), lest it thin out in larger banks (Chiang and Cholak, 2022,
            "Overcoming a Theoretical Limitation of Self-Attention"); if it is joint, n counts the query too. 0: it
            stays as it is.
    """

    heads: int = 4
    loops: int = 1
    query_attention: Literal["joint", "cross"] = "cross"
    relational: bool = True
    readout: Literal["classes", "pointer"] = "pointer"
    state_embeddings: bool = True
    codec: Literal["integer", "binary"] = "integer"
    aligned: bool = True
    context: int = 0
    usual_memories: int = 0

    def __post_init__(self) -> None:
        require_choices(
            query_attention=(self.query_attention, ("joint", "cross")),
            readout=(self.readout, ("classes", "pointer")),
            codec=(self.codec, ("integer", "binary")),
        )
        if self.dim % self.heads:
            raise ValueError(f"dim {self.dim} is not a multiple of heads {self.heads}")
        if not self.state_embeddings and not (self.relational and self.readout == "pointer"):
            raise ValueError("a model without state embeddings must be relational with readout='pointer'")
        if self.codec == "binary" and not self.state_embeddings:
            raise ValueError("a binary codec embeds states")
        if not 0 <= self.usual_memories <= self.max_memories:
            raise ValueError(
                f"usual_memories must lie between 0 and max_memories {self.max_memories}, got {self.usual_memories}"
            )
        if self.context and not (0 < self.context <= self.max_memories and self.query_attention == "cross"):
            raise ValueError(f"context must lie between 0 and max_memories, with cross attention, got {self.context}")


def relations(reader: Tensor, read: Tensor) -> Tensor:
    """Which states each reading transition shares with each transition it reads.

    Args:
        reader: (B, T, 3) int transitions.
        read: (B, N, 3) int transitions.

    Returns:
        (B, T, 1 + N, 4) bool: source is source, source is end, end is source, end is end; a masked component
        equals nothing. The first column stands for the null token and is False.
    """
    mine, theirs = reader[:, :, None, ::2], read[:, None, :, ::2]
    same = (mine[..., None] == theirs[..., None, :]) & (mine[..., None] >= 0)
    return F.pad(same.flatten(3), (0, 0, 1, 0))


class Block(nn.Module):
    """Pre-norm attention and feed-forward layer; every token may read the learned null token."""

    def __init__(self, config: TransformerConfig | ViewTransformerConfig | TEMTConfig) -> None:
        super().__init__()
        dim, self.heads = config.dim, config.heads
        self.attention_norm = nn.LayerNorm(dim, bias=False)
        self.query = nn.Linear(dim, dim, bias=False)
        self.key = nn.Linear(dim, dim, bias=False)
        self.value = nn.Linear(dim, dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)
        self.sharpness = nn.Parameter(torch.full((self.heads, 1, 1), math.sqrt(dim // self.heads)))
        self.null_key = nn.Parameter(torch.zeros(self.heads, 1, dim // self.heads))
        self.null_value = nn.Parameter(torch.zeros(self.heads, 1, dim // self.heads))
        if config.relational:
            self.relation_bias = nn.Parameter(2 * torch.randn(N_RELATIONS, self.heads))
            self.relation_value = nn.Linear(self.heads * N_RELATIONS, dim, bias=False)
            nn.init.zeros_(self.relation_value.weight)
        self.mlp_norm = nn.LayerNorm(dim, bias=False)
        self.up = nn.Linear(dim, 4 * dim, bias=False)
        self.down = nn.Linear(4 * dim, dim, bias=False)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.down.weight)

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def keys_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(B, H, 1 + N, D) keys and values of the tokens (B, N, dim), the null token first."""
        y = self.attention_norm(x)
        key, value = self._split(self.key(y)), self._split(self.value(y))
        null = (len(x), -1, -1, -1)
        key = torch.cat([self.null_key.to(key.dtype).expand(null), key], 2)
        value = torch.cat([self.null_value.to(value.dtype).expand(null), value], 2)
        return F.normalize(key, dim=-1), value

    def forward(
        self,
        x: Tensor,
        keys_values: tuple[Tensor, Tensor],
        mask: Tensor,
        related: Tensor | None,
        sharper: Tensor | None = None,
    ) -> Tensor:
        """Let tokens read.

        Args:
            x: (B, T, dim) tokens.
            keys_values: what they read.
            mask: (B, 1, 1, 1 + N), 0 or very negative.
            related: from `relations`, or None.
            sharper: (B, 1, 1, 1), a factor for the logits of attention, or None.
        """
        key, value = keys_values
        query = F.normalize(self._split(self.query(self.attention_norm(x))), dim=-1) * self.sharpness
        logits = query.to(key.dtype) @ key.mT
        if related is not None:
            logits = logits + (related @ self.relation_bias.to(related.dtype)).permute(0, 3, 1, 2)
        if sharper is not None:
            logits = sharper * logits
        logits = logits + mask
        # Two products and a softmax: at these lengths cheaper to train than fused attention.
        attention = logits.softmax(-1).to(value.dtype)
        y = self.out((attention @ value).transpose(1, 2).flatten(2))
        if related is not None:
            y = y + self.relation_value((attention.transpose(1, 2) @ related).flatten(2))
        x = x + y
        return x + self.down(F.gelu(self.up(self.mlp_norm(x))))


class Transformer(TokenModel):
    """ESWM-T. See TransformerConfig for its options."""

    config: TransformerConfig

    def __init__(self, config: TransformerConfig) -> None:
        classes = config.readout == "classes"
        codec = build_codec(config.codec, config.n_states, config.dim, config.state_embeddings, classes)
        super().__init__(config, codec)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.dim, bias=False)
        self.action_head = nn.Linear(config.dim, config.n_actions + 1)
        if config.readout == "pointer":
            self.point_from = nn.Linear(config.dim, 4 * config.dim, bias=False)
            self.point_to = nn.Linear(config.dim, 2 * config.dim, bias=False)
            self.unknown = nn.Linear(config.dim, 2)
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
        for block in self.depth[: self.config.layers]:
            # (heads, dimensions of a head, parts of a token, width)
            query, key = (w.weight.zero_().view(heads, -1, dim // width, width) for w in (block.query, block.key))
            for head in range(heads):
                mine, theirs = looked_for[head % N_RELATIONS]
                projection = nn.init.orthogonal_(torch.empty(dim // heads, dim // width * third))
                query[head, ..., mine] = key[head, ..., theirs] = projection.unflatten(1, (-1, third))

    @property
    def depth(self) -> list[Block]:
        """The blocks in the order in which tokens pass them."""
        return [*self.blocks] * self.config.loops

    def _context(self, reader: Tensor, read: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """The attention mask over padding, the relations if the model uses them, and how much sharper attention is."""
        padding = (read[..., SOURCE] < 0) & (read[..., END] < 0)  # a query has one of them at least
        mask = F.pad(torch.where(padding, -1e4, 0.0), (1, 0))[:, None, None].to(dtype)
        related = relations(reader, read).to(dtype) if self.config.relational else None
        if not self.config.usual_memories:
            return mask, related, None
        size = 1 + (~padding).sum(1)  # the null token is one of them
        return mask, related, (size.log() / math.log(1 + self.config.usual_memories)).to(dtype).view(-1, 1, 1, 1)

    def encode(self, memories: Tensor) -> EncodedBank:
        self.check_length(memories)
        if self.config.query_attention == "joint":
            return EncodedBank(memories)
        x = self.embed(memories)
        if context := self.config.context:
            if x.shape[1] < context:
                raise ValueError(f"the last {context} rows of a bank are the context, but there are {x.shape[1]} rows")
            x = torch.cat([x[:, :-context], x[:, -context:] + self.place.to(x.dtype)], 1)
        reads = self._context(memories, memories, x.dtype)
        keys_values = []
        for block in self.depth:
            keys_values.append(block.keys_values(x))
            x = block(x, keys_values[-1], *reads)
        return EncodedBank(memories, (keys_values, self.norm(x)))

    def predict(self, bank: EncodedBank, query: Tensor) -> Prediction:
        if self.config.query_attention == "joint":
            batch, n_queries = query.shape[:2]
            memories, sequence = self._sequences(bank.memories, query)
            *_, x = self._joint_layers(sequence)
            x = self.norm(x)
            prediction = self._read_out(x[:, -1:], x[:, :-1], memories)
            return Prediction(*(prediction.head(i).view(batch, n_queries, -1) for i in range(3)))
        *_, x = self._cross_layers(bank, query)
        return self._read_out(self.norm(x), bank.cache[1], bank.memories)

    def activations(self, bank: EncodedBank, query: Tensor) -> Tensor:
        if self.config.query_attention == "joint":
            _, sequence = self._sequences(bank.memories, query)
            return torch.stack([x[:, -1].view(*query.shape[:2], -1) for x in self._joint_layers(sequence)])
        return torch.stack(list(self._cross_layers(bank, query)))

    def _cross_layers(self, bank: EncodedBank, query: Tensor) -> Iterator[Tensor]:
        """The query tokens (B, Q, dim) after each block."""
        x = self.embed(query)
        reads = self._context(query, bank.memories, x.dtype)
        for block, kv in zip(self.depth, bank.cache[0], strict=True):
            x = block(x, kv, *reads)
            yield x

    def _sequences(self, memories: Tensor, query: Tensor) -> tuple[Tensor, Tensor]:
        """The paper's attention: each query forms one sequence with the bank, and every token reads every token.

        Returns:
            (B * Q, N, 3) the bank of each sequence, and (B * Q, N + 1, 3) the sequences, the query last.
        """
        memories = memories.repeat_interleave(query.shape[1], 0)
        return memories, torch.cat([memories, query.flatten(0, 1)[:, None]], 1)

    def _joint_layers(self, sequence: Tensor) -> Iterator[Tensor]:
        """All tokens (B * Q, N + 1, dim) after each block."""
        x = self.embed(sequence)
        reads = self._context(sequence, sequence, x.dtype)
        for block in self.depth:
            x = block(x, block.keys_values(x), *reads)
            yield x

    def _read_out(self, x: Tensor, memory: Tensor, memories: Tensor) -> Prediction:
        """Logits from query tokens x (B, Q, dim), memory tokens (B, N, dim) and the bank (B, N, 3)."""
        if self.config.readout == "classes":
            return self.classify(x)
        # A score for each of 2N slots (source and end of each memory) from each of the two state heads.
        pointers = self.point_from(x).unflatten(-1, (2, 2, -1))  # head, slot
        slots = self.point_to(memory).unflatten(-1, (2, -1))
        scores = torch.einsum("bqhsd,bnsd->hbqns", pointers, slots).float() / math.sqrt(self.config.dim)
        states = memories[:, :, ::2]
        scores = _soft_cap(scores).masked_fill((states < 0)[None, :, None], -1e4).flatten(3)
        unknown = _soft_cap(self.unknown(x).float()).movedim(-1, 0)[..., None]
        # log-sum-exp over the slots of each state; a state that no memory holds gets next to nothing.
        peak = torch.cat([scores, unknown], -1).amax(-1, keepdim=True).detach()
        holds = F.one_hot(states.flatten(1).clamp(min=0), self.config.n_states).to(scores.dtype)
        per_state = ((scores - peak).exp() @ holds + 1e-20).log() + peak
        source, end = torch.cat([per_state, unknown], -1)
        return Prediction(source, self.action_head(x), end)


def _soft_cap(scores: Tensor) -> Tensor:
    """Keep pointer scores within +-SCORE_CAP: the floor under a log-sum-exp must never hide a state's gradient."""
    return SCORE_CAP * (scores / SCORE_CAP).tanh()
