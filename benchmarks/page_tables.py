"""What each table of README and docs shows; `python benchmarks/report.py --tables` writes them."""

from __future__ import annotations

from common.tables import Table, methods, of, parts
from indoor_tables import INDOOR_TABLES
from robust_tables import ROBUST_TABLES
from seed_tables import SEED_TABLES
from view_tables import VIEW_TABLES
from world_tables import WORLD_TABLES

from eswm_gym.rooms.transitions import COMPONENTS

KINDS = ("seen", "unseen", "unsolvable")
SIZES = {"19 locations": "random-wall-19", "37 locations": "random-wall-37"}
PAPER = {"show": "paper"}

SUCCESS = ("success_rate", "path_optimality")

NAVIGATE = Table(
    "method",
    methods(
        "random",
        "memory-graph",
        "path-integration",
        "epn",
        "eswm-dijkstra",
        "eswm-astar",
        "eswm-greedy",
        "eswm-uncertainty",
        "eswm",
    )
    | {"the paper's ESWM": of(method="eswm-dijkstra", **PAPER), "the paper's EPN (derived)": of(method="epn", **PAPER)},
    {
        f"{size}: success, optimality": [of(setting=setting, metric=metric) for metric in SUCCESS]
        for size, setting in SIZES.items()
    },
    of(file="navigate"),
    between=", ",
)

HELD_OUT = Table(
    "rooms, queries",
    {f"{size}, {kind}": of(setting=setting, kind=kind) for size, setting in SIZES.items() for kind in KINDS}
    | {"Open Arena, unseen": of(setting="open-arena-unseen", kind="unseen")},
    {
        "validity: source / action / end": parts("validity/{kind}/{part}"),
        "accuracy: source / action / end": parts("accuracy/{kind}/{part}"),
        "paper, accuracy (T-4L, 37 locations)": parts("accuracy/{kind}/{part}", **PAPER),
    },
    of(file="predict", method="random-wall"),
)

GUIDED = Table(
    "",
    {
        "states expanded: Dijkstra": of(method="eswm-dijkstra", metric="states_expanded", digits=1),
        "states expanded: A*": of(method="eswm-astar", metric="states_expanded", digits=1),
        "of these saved": of(method="eswm-astar", metric="expansions_saved"),
        "states expanded: A*, straight distances": of(
            method="eswm-astar-euclidean", metric="states_expanded", digits=1
        ),
        "of these saved by straight distances": of(method="eswm-astar-euclidean", metric="expansions_saved"),
        "optimality of plans with straight distances": of(method="eswm-astar-euclidean", metric="planned_optimality"),
        "path optimality: Dijkstra": of(method="eswm-dijkstra", metric="path_optimality", digits=4),
        "path optimality: A*": of(method="eswm-astar", metric="path_optimality", digits=4),
        "greedy policy: success": of(method="eswm-greedy", metric="success_rate"),
        "greedy policy: success on detours": of(method="eswm-greedy", metric="detour_success_rate"),
        "R² of latent distance and shortest path": of(method="eswm", metric="latent_r2"),
    },
    {size: of(setting=setting) for size, setting in SIZES.items()}
    | {"paper, 37 locations": of(setting="random-wall-37", **PAPER)},
    of(file="navigate"),
)

EXPLORERS = "random epn lattice-frontier lattice-frontier-ordered eswm-uncertainty eswm-unordered eswm oracle bound"

EXPLORE = Table(
    "",
    {f"locations visited: `{name}`": of(method=name, metric="unique_locations", digits=2) for name in EXPLORERS.split()}
    | {
        f"`{name}` over `{other}`": of(method=name, metric=f"{other}_ratio")
        for name in ("eswm", "eswm-uncertainty")
        for other in ("oracle", "epn")
    }
    | {"`eswm`: share visited when the bank is full (18, 36)": of(method="eswm", metric="coverage")}
    | {
        f"`eswm`: relative accuracy, {name}": of(method="eswm", metric=f"relative_accuracy/{name}")
        for name in COMPONENTS
    },
    {
        "19 locations, 15 steps": of(setting="random-wall-19"),
        "37 locations, 25 steps": of(setting="random-wall-37"),
        "paper, 19 locations": of(setting="random-wall-19", **PAPER),
    },
    of(file="explore"),
)

NO_MASK = Table(
    "locations visited",
    methods(
        "lattice-frontier",
        "lattice-frontier-ordered",
        "blind-frontier",
        "blind-frontier-no-radius",
        "eswm-uncertainty",
        "eswm-unordered",
        "eswm",
    ),
    {
        f"{size}, {label}": of(setting=f"{setting}{suffix}")
        for size, setting in SIZES.items()
        for label, suffix in (("mask", ""), ("no mask", "-no-mask"))
    },
    of(file="explore", metric="unique_locations", digits=2),
)

PARTS = Table(
    "method",
    methods("eswm-untrained", "eswm-memories-alone", "eswm-model-alone", "eswm", "rules"),
    {
        f"{label}: {size}": of(setting=setting, **key)
        for label, key in (
            ("navigation, success", of(file="navigate", metric="success_rate")),
            ("optimality", of(file="navigate", metric="path_optimality")),
            ("exploration, locations", of(file="explore", metric="unique_locations", digits=2)),
            ("adaptation, detours of 3 walls", of(file="adapt", metric="detour_success_rate", at=3)),
        )
        for size, setting in SIZES.items()
    },
    of(),
)

CHANGED = {
    f"`{name}`, {label}": of(method=name, setting=setting)
    for label, setting, names in (
        (
            "new rooms",
            "random-wall-19",
            ("memory-graph", "path-integration", "epn", "eswm-no-editing", "eswm"),
        ),
        ("A2C-LSTM's room", "trained-room", ("epn", "a2c-lstm", "eswm-no-editing", "eswm")),
    )
    for name in names
}
COUNTED = {
    f"episodes, {label}": of(method="eswm-no-editing", setting=setting, show="n")
    for label, setting in (("new rooms", "random-wall-19"), ("A2C-LSTM's room", "trained-room"))
}

ADAPT = Table(
    "success rate by new walls",
    CHANGED | COUNTED,
    {str(n): of(at=n) for n in range(6)} | {"paper, full wall": of(at=5, **PAPER)},
    of(file="adapt", metric="success_rate"),
)

ADAPT_DETOURS = Table(
    "success rate on detours, by new walls",
    CHANGED | COUNTED,
    {str(n): of(at=n) for n in range(1, 6)},
    of(file="adapt", metric="detour_success_rate"),
)

RECURRENT = ("eswm-lstm", "eswm-mamba")
RANDOM_WALL_MODELS = (
    *("eswm-agent", "eswm-t-relational", "eswm-t", "eswm-t-longer", "eswm-t-trajectory", "tem-t"),
    *RECURRENT,
    *("emwm", "emwm-nearest", "lookup", "path-integrator"),
)

PREDICT_RANDOM_WALL = Table(
    "model",
    methods(*RANDOM_WALL_MODELS)
    | {
        f"the paper's {label}": of(method=method, **PAPER)
        for label, method in (
            ("ESWM-T", "eswm-t"),
            ("ESWM-T on trajectories", "eswm-t-trajectory"),
            ("ESWM-LSTM", "eswm-lstm"),
            ("ESWM-Mamba", "eswm-mamba"),
        )
    },
    {kind: parts(f"accuracy/{kind}/{{part}}") for kind in KINDS},
    of(file="predict", setting="random-wall-37"),
)

ELSEWHERE = Table(
    "model",
    methods("eswm-t-relational", "eswm-t", "eswm-t-longer", "eswm-t-trajectory", "tem-t", *RECURRENT, "lookup"),
    {
        label: parts("accuracy/unseen/{part}", setting=setting)
        for label, setting in (("19 locations", "random-wall-19"), ("37, larger banks", "random-wall-37-dense"))
    },
    of(file="predict"),
)

LEARNING = Table(
    "held-out loss",
    methods("eswm-t", *RECURRENT),
    {f"{n} minutes": of(metric="loss_by_minutes", at=n) for n in (1, 2, 5, 10, 30, 60)}
    | {f"{n / 1e6:g} M queries": of(metric="loss_by_queries", at=n) for n in (10**6, 2 * 10**6, 4 * 10**6, 8 * 10**6)},
    of(file="predict", setting="random-wall-37", digits=2),
)

PREDICT_OPEN_ARENA = Table(
    "model",
    methods(
        "eswm-t",
        "eswm-t-relational",
        "eswm-t-looped",
        "eswm-t-relational-shapes",
        "eswm-t-relational-trajectory",
        "tem-t",
        "eswm-lstm",
        "eswm-mamba",
        "emwm",
        "lookup",
    )
    | {
        "the paper's (T-6L)": of(method="eswm-t", **PAPER),
        "the paper's on trajectories (T-10L)": of(method="eswm-t-relational-trajectory", **PAPER),
    },
    {
        label: parts("accuracy/unseen/{part}", setting=setting)
        for label, setting in (
            ("states never trained on", "open-arena-unseen"),
            ("trained states", "open-arena-seen"),
            ("37 locations", "open-arena-37"),
        )
    },
    of(file="predict"),
)

HERE_AND_PAPER = {"here": of(), "the paper's": PAPER}

HEADS = Table(
    "6 layers",
    HERE_AND_PAPER,
    {f"{n} heads": parts("accuracy/unseen/{part}", method=f"6l-{n}h") for n in (2, 4, 8, 16)},
    of(file="predict", setting="open-arena-unseen"),
)

LAYERS = Table(
    "8 heads",
    {"here": of()},
    {f"{n} layers": parts("accuracy/unseen/{part}", method=f"{n}l-8h") for n in (2, 4, 6, 8)},
    of(file="predict", setting="open-arena-unseen"),
)

ATTENTION = Table(
    "attention",
    {
        "cross": of(method="cross"),
        "cross, weights not aligned": of(method="cross-unaligned"),
        "cross, with relations": of(method="cross-relations"),
        "joint, as in the paper": of(method="joint"),
        "joint, with relations": of(method="joint-relations"),
    },
    {"unseen: source / action / end": parts("accuracy/unseen/{part}")},
    of(file="predict", setting="random-wall-37"),
)

INTEGRATION = Table(
    "",
    {
        "entropy and path length: Spearman's correlation": of(metric="entropy_correlation"),
        "change by a memory that shortens the path, nats": of(metric="kl/informative"),
        "change by another memory, nats": of(metric="kl/uninformative"),
        "accuracy lost to a contradictory transition": of(metric="accuracy_drop/contradictory-transitions"),
        "accuracy lost to contradictory states": of(metric="accuracy_drop/contradictory-states"),
        "the same, of queries whose state is remembered": of(metric="accuracy_drop_remembered/contradictory-states"),
        "accuracy lost to states that the room lacks": of(metric="accuracy_drop/strange-states"),
    },
    {name: of(method=name) for name in ("eswm-t-longer", "eswm-t-dense", "eswm-agent")}
    | {"paper": of(method="eswm-t-longer", **PAPER)},
    of(file="predict", setting="random-wall-37"),
)

DUPLICATES = Table(
    "where a query starts",
    {
        "unique states": of(suffix="", given="context"),
        "a state of its own, others are duplicated": of(suffix="-duplicates-source-unique", given="context"),
        "a duplicated state": of(suffix="-duplicates-source-duplicated", given="context"),
        "a duplicated state, without the walk there": of(suffix="-duplicates-source-duplicated", given="no-context"),
    },
    {
        f"{head}, {model}": key
        for model in ("eswm-t", "eswm-agent")
        for head, key in {
            "Random Wall, unseen: action / end": parts(
                "accuracy/unseen/{part}", COMPONENTS[1:], family="random-wall-37", model=model
            ),
            "unsolvable: end": of(metric="accuracy/unsolvable/end", family="random-wall-37", model=model),
            "Open Arena, unseen: action / end": parts(
                "accuracy/unseen/{part}", COMPONENTS[1:], family="open-arena-unseen", model=model
            ),
        }.items()
    },
    of(file="predict", setting="{family}{suffix}", method="{model}-{given}"),
)

LATENT = Table(
    "",
    {
        "sRSA, 19 locations, 5 banks each": of(metric="srsa", setting="random-wall-19"),
        "distance probe, 10 seeds": of(metric="distance_probe", setting="random-wall-19"),
        "distance probe on each location's own moves": of(metric="distance_probe_own_moves", setting="random-wall-19"),
        "R² of latent and shortest path length, 37 locations, one bank": of(metric="latent_r2"),
        "the same, a step costing the cosine distance as in the paper": of(metric="latent_r2_cosine"),
        "the same, five banks": of(metric="latent_r2_banks"),
    },
    {
        "ESWM": of(method="eswm"),
        "untrained": of(method="untrained"),
        "one-hot positions": of(method="positions"),
        "paper": of(method="eswm", **PAPER),
        "paper, untrained": of(method="untrained", **PAPER),
    },
    of(file="latent", setting="random-wall-37"),
)

LATENT_MODELS = Table(
    "model",
    methods("eswm-t", *RECURRENT, "epn", "epn-spanning"),
    {
        "end states of unseen queries right": of(
            file="predict", setting="random-wall-37", metric="accuracy/unseen/end"
        ),
        "disparity of the map": of(metric="isomap_disparity"),
        "correlation": of(metric="isomap_correlation"),
        "sRSA": of(metric="isomap_srsa"),
    },
    of(file="latent", setting="paper-rooms"),
)

CLUSTERS = Table(
    "what tells how they lie",
    {
        "nothing": of(cue="none"),
        "one obstacle that each observes": of(cue="one-obstacle-each"),
        "three obstacles and one": of(cue="wall"),
        "the shape of the room": of(cue="shape"),
    },
    {
        "what can be known": of(method="ideal", metric="neighbor_mass"),
        "the true neighbour": of(method="eswm", metric="neighbor_mass"),
        "any state of the other cluster": of(method="eswm", metric="other_cluster_mass"),
        "blocked": of(method="eswm", metric="stays_mass"),
        "I don't know": of(method="eswm", metric="unknown_mass"),
    },
    of(file="latent", setting="clusters-{cue}"),
)

LEARN = Table(
    "method",
    methods("ppo", "ppo-planned-action", "ppo-uncertainty-bonus", "ppo-only-bonus", "eswm"),
    {
        "goals reached": of(setting="random-wall-19", metric="success_rate"),
        "locations visited": of(setting="random-wall-19-explore", metric="unique_locations", digits=2),
    },
    of(file="learn", at="last"),
)

TABLES = {
    "navigate": NAVIGATE,
    "held-out": HELD_OUT,
    "guided": GUIDED,
    "explore": EXPLORE,
    "no-mask": NO_MASK,
    "parts": PARTS,
    "adapt": ADAPT,
    "adapt-detours": ADAPT_DETOURS,
    **INDOOR_TABLES,
    **ROBUST_TABLES,
    **SEED_TABLES,
    **VIEW_TABLES,
    **WORLD_TABLES,
    "predict-random-wall": PREDICT_RANDOM_WALL,
    "predict-elsewhere": ELSEWHERE,
    "predict-learning": LEARNING,
    "predict-open-arena": PREDICT_OPEN_ARENA,
    "heads": HEADS,
    "layers": LAYERS,
    "attention": ATTENTION,
    "integration": INTEGRATION,
    "duplicates": DUPLICATES,
    "latent": LATENT,
    "latent-models": LATENT_MODELS,
    "clusters": CLUSTERS,
    "learn": LEARN,
}
