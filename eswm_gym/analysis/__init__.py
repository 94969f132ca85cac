"""The map inside: what a model's activations and predictions say of the room, on models and worlds of your own too.

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
from eswm_gym.analysis.integration import (
    entropy_by_length,
    forgotten,
    integration_lengths,
    predictions,
    right_answers,
    shortcut_divergences,
    sized_banks,
)
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
    clusters,
    path_lengths,
    room_of_kind,
    several_banks,
)
from eswm_gym.rooms.lattice.clusters import cluster_banks, placement_belief
from eswm_gym.rooms.lattice.noise import append_memory, contradict_states, contradict_transitions, strange_states

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
    "append_memory",
    "cluster_banks",
    "clusters",
    "contradict_states",
    "contradict_transitions",
    "draw_triplets",
    "entropy_by_length",
    "forgotten",
    "gap_belief",
    "integration_lengths",
    "isomap",
    "latent_geodesics",
    "map_fit",
    "path_lengths",
    "place_means",
    "placement_belief",
    "predictions",
    "queries_of",
    "r_squared",
    "right_answers",
    "room_of_kind",
    "several_banks",
    "shortcut_divergences",
    "sized_banks",
    "spearman",
    "srsa",
    "strange_states",
    "untrained",
]
