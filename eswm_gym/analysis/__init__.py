"""The map inside: what a model's activations say of the room, on models and worlds of your own too.

Needs scikit-learn for `isomap` and matplotlib for `figures`: `pip install 'eswm-gym[plot]'`.
"""

from eswm_gym.analysis.activations import (
    TASKS,
    Activations,
    PlaceQueries,
    Task,
    activations,
    place_means,
    queries_of,
    untrained,
)
from eswm_gym.analysis.gaps import GapBelief, gap_belief
from eswm_gym.analysis.measures import (
    DistanceProbe,
    MapFit,
    Triplets,
    draw_triplets,
    isomap,
    latent_geodesics,
    map_fit,
    r_squared,
    spearman,
    srsa,
)
from eswm_gym.analysis.rooms import (
    CUES,
    KINDS,
    Cue,
    cluster_banks,
    clusters,
    path_lengths,
    room_of_kind,
    several_banks,
)

__all__ = [
    "CUES",
    "KINDS",
    "TASKS",
    "Activations",
    "Cue",
    "DistanceProbe",
    "GapBelief",
    "MapFit",
    "PlaceQueries",
    "Task",
    "Triplets",
    "activations",
    "cluster_banks",
    "clusters",
    "draw_triplets",
    "gap_belief",
    "isomap",
    "latent_geodesics",
    "map_fit",
    "path_lengths",
    "place_means",
    "queries_of",
    "r_squared",
    "room_of_kind",
    "several_banks",
    "spearman",
    "srsa",
    "untrained",
]
