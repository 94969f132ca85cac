"""Poses in a plane and the moves between them (paper: "ProcThor Experiments").

A pose is (x, y, heading): metres, and radians clockwise from the direction of y. An action is (right, forward, turn) as
the agent sees it, in the same units: it moves in the frame that it begins with, then turns clockwise. Arrays have poses
and actions in their last dimension.
"""

from __future__ import annotations

import math

import numpy as np

REACH = 1.5  # metres; an action goes at most so far to either side, and ahead or back
CELLS = 8  # classes of displacement along each axis
N_DISPLACEMENTS = CELLS**2
N_ROTATIONS = 36
FIELD_OF_VIEW = math.pi / 2


def moved(pose: np.ndarray, action: np.ndarray) -> np.ndarray:
    """(..., 3) float, where actions (..., 3) lead from poses (..., 3)."""
    x, y, heading = np.moveaxis(np.asarray(pose, float), -1, 0)
    right, forward, turn = np.moveaxis(np.asarray(action, float), -1, 0)
    sin, cos = np.sin(heading), np.cos(heading)
    return np.stack([x + right * cos + forward * sin, y - right * sin + forward * cos, wrap(heading + turn)], -1)


def action_between(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """(..., 3) float, the actions that lead from one pose to another, whatever their length."""
    start, end = np.asarray(start, float), np.asarray(end, float)
    dx, dy, turn = np.moveaxis(end - start, -1, 0)
    sin, cos = np.sin(start[..., 2]), np.cos(start[..., 2])
    return np.stack([dx * cos - dy * sin, dx * sin + dy * cos, wrap(turn)], -1)


def reverse(action: np.ndarray) -> np.ndarray:
    """(..., 3) float, the actions that undo others."""
    action = np.asarray(action, float)
    return action_between(action, np.zeros(3))


def wrap(angle: np.ndarray | float) -> np.ndarray:
    """Angles as -pi <= angle < pi."""
    return (np.asarray(angle) + math.pi) % (2 * math.pi) - math.pi


def within_reach(action: np.ndarray) -> np.ndarray:
    """(...) bool, whether one action can be so long."""
    return (np.abs(np.asarray(action)[..., :2]) <= REACH).all(-1)


def displacement_class(action: np.ndarray) -> np.ndarray:
    """(...) int, which of 8 x 8 squares of the box of 3 x 3 metres an action leads to (paper: 64 classes)."""
    cell = np.floor((np.asarray(action)[..., :2] + REACH) / (2 * REACH) * CELLS).clip(0, CELLS - 1).astype(np.int64)
    return cell[..., 0] * CELLS + cell[..., 1]


def rotation_class(action: np.ndarray) -> np.ndarray:
    """(...) int, which of 36 sectors of 10 degrees an action turns into, the first from -180 degrees on."""
    turn = wrap(np.asarray(action)[..., 2])
    return np.floor((turn + math.pi) / (2 * math.pi) * N_ROTATIONS).clip(0, N_ROTATIONS - 1).astype(np.int64)
