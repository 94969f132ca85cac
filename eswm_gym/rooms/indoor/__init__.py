"""Houses seen from above (paper: "ProcThor Experiments"): what stands where, where one can walk, what one sees from
where, and the banks and queries that are made of it."""

from eswm_gym.rooms.indoor.banks import MAX_MEMORIES, Asked, IndoorQueries, draw_bank, draw_queries, query_kinds
from eswm_gym.rooms.indoor.house import (
    Door,
    Furniture,
    House,
    Picture,
    Room,
    Surface,
    draw_house,
    from_procthor,
)
from eswm_gym.rooms.indoor.pools import POSES, WAYS, Pool, draw_pool, draw_ways
from eswm_gym.rooms.indoor.poses import (
    CELLS,
    N_DISPLACEMENTS,
    N_ROTATIONS,
    REACH,
    action_between,
    displacement_class,
    moved,
    reverse,
    rotation_class,
    within_reach,
    wrap,
)
from eswm_gym.rooms.indoor.space import OVERLAP, RADIUS, Space

__all__ = [
    "CELLS",
    "MAX_MEMORIES",
    "N_DISPLACEMENTS",
    "N_ROTATIONS",
    "OVERLAP",
    "POSES",
    "RADIUS",
    "REACH",
    "Asked",
    "Door",
    "Furniture",
    "House",
    "IndoorQueries",
    "Picture",
    "Pool",
    "Room",
    "Space",
    "Surface",
    "WAYS",
    "action_between",
    "displacement_class",
    "draw_bank",
    "draw_house",
    "draw_pool",
    "draw_queries",
    "draw_ways",
    "from_procthor",
    "moved",
    "query_kinds",
    "reverse",
    "rotation_class",
    "within_reach",
    "wrap",
]
