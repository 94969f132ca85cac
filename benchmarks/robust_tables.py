"""What the tables of where each method breaks show."""

from __future__ import annotations

from common.tables import Table, of

METHODS = ("random", "memory-graph", "path-integration", "epn", "cscg", "eswm", "rules")
# What a level is, its setting, and of its levels some in between and the worst.
LEVELS = (
    ("{:.0%} of moves slip", "slip", (0.1, 0.3)),
    ("{:.0%} of states are wrong", "wrong-state", (0.05, 0.2)),
    ("walls move after {:.0%} of steps", "walls-drift", (0.25, 1)),
    ("{:g} locations look alike", "aliasing", (4, 8)),
    ("{:.0%} of the bank is old", "stale", (0.33, 1)),
    ("{:g} of a minimal bank", "bank-size", (0.25, 3)),
    ("{:g} wall locations", "shape", (8, 16)),
)


def _table(metric: str) -> Table:
    return Table(
        metric.replace("_", " "),
        {name.format(level): of(setting=setting, at=level) for name, setting, levels in LEVELS for level in levels},
        {f"`{method}`": of(method=method) for method in METHODS},
        of(file="robust", metric=metric),
    )


ROBUST_TABLES = {"robust-success": _table("success_rate"), "robust-optimality": _table("path_optimality")}
