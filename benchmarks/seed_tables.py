"""What the tables of several trainings show."""

from __future__ import annotations

from common.tables import Table, methods, of, parts

ROOMS = {"19 locations": "random-wall-19", "37 locations": "random-wall-37", "A2C-LSTM's room": "trained-room"}

MODELS = Table(
    "model, rooms",
    {
        f"`{run}`, {rooms}": of(setting=setting, method=run, shipped=shipped)
        for run, rooms, setting, shipped in (
            ("random-wall", "19 locations", "random-wall-19", "random-wall"),
            ("random-wall", "37 locations", "random-wall-37", "random-wall"),
            ("rw-t", "37 locations", "random-wall-37", "eswm-t"),
            ("oa-t", "Open Arena", "open-arena-unseen", "eswm-t"),
        )
    },
    {
        "trainings": of(metric="accuracy/unseen/end", show="n"),
        "unseen: source": of(metric="accuracy/unseen/source"),
        "action": of(metric="accuracy/unseen/action"),
        "end": of(metric="accuracy/unseen/end"),
        "interquartile mean over kinds and components": of(metric="iqm"),
        "the one that comes with the repository": parts(
            "accuracy/unseen/{part}", file="predict", method="{shipped}", show="value only"
        ),
    },
    of(file="seeds"),
)

AGENTS = Table(
    "method",
    methods("eswm", "epn", counted_in="random-wall-19") | methods("a2c-lstm", counted_in="trained-room"),
    {"trainings": of(setting="{counted_in}", metric="spl", show="n")}
    | {
        f"{rooms}: {label}": of(setting=setting, metric=metric)
        for rooms, setting in ROOMS.items()
        for label, metric in (("success", "success_rate"), ("SPL", "spl"))
    }
    | {"interquartile mean of SPL": of(setting="navigate", metric="iqm")},
    of(file="seeds"),
)

SEED_TABLES = {"seeds-models": MODELS, "seeds-agents": AGENTS}
