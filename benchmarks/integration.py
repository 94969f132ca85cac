"""Does the model integrate its memories (paper: "ESWM Integrates Overlapping Memories"), in rooms of Random Wall.

accuracy_minimal, _dense    unseen queries by how many memories the bank holds: minimal banks of ever larger observed
                            regions; then banks of the whole room with ever more transitions; validity_*: any answer
                            that is true in the room counts
accuracy_drop               what noise costs on the same banks and queries (the paper's mix): the memories of one
                            location observe different states there, those of other locations (contradictory-states);
                            one of them stays true and the others observe states that the room lacks (strange-states,
                            where a model knows more states than a room has); a memory's copy that ends elsewhere is
                            appended (contradictory-transitions)
accuracy_drop_remembered    the same over queries which do not name the state that no memory observes any more
entropy                     of predictions of unseen moves, in nats, by the shortest path from source to end over the
                            memories of a minimal bank; entropy_correlation: Spearman's, of the two
kl                          Kullback-Leibler divergence, in nats, of the prediction before from that after one more
                            memory, which shortens that path (informative) or does not (uninformative)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from common.cli import BySize, Parser, finish, model_seed
from common.intervals import Estimate, mean, over_rooms
from common.models import add_model_option, find_model
from common.plots import bars, curves, looks_of, place_legend, save_figure
from common.progress import progress
from common.rows import Row, Test
from common.tests import t_test

from eswm_gym.analysis import (
    contradict_states,
    contradict_transitions,
    entropy_by_length,
    forgotten,
    right_answers,
    shortcut_divergences,
    sized_banks,
    spearman,
    strange_states,
)
from eswm_gym.rooms import UNSEEN_ONLY, RoomConfig, draw_queries, generate_rooms, spanning_banks
from eswm_gym.world_model import ESWM

HIDDEN = (0.4, 0.3, 0.2, 0.1, 0.0)  # shares of the locations that minimal banks do not observe
EXTRA = (1 / 6, 1 / 3, 1 / 2, 2 / 3, 5 / 6, 1.0)  # transitions of dense banks beyond a minimal one, by location
PAPER = {"contradictory-states": 0.01, "strange-states": 0.01, "contradictory-transitions": 0.10}
QUERIES = 10  # of each bank
FEWEST = 10  # predictions that a mean may rest on


def integration_rows(
    model: ESWM, rooms: RoomConfig, method: str, n_queries: int = 5000, seed: int = 0
) -> tuple[list[Row], list[Test]]:
    """All four experiments; the rows are also the data of `plot_integration`.

    Args:
        model: one that predicts sources, actions and ends, from banks of up to twice the locations.
        rooms: family of rooms, with states that the model knows.
        method: name in the table.
        n_queries: about how many each experiment asks; two fifths of that for each size of bank, as in the paper.
        seed: of everything.
    """
    setting = f"random-wall-{rooms.n_locations}"
    rows = size_rows(model, rooms, setting, method, 2 * n_queries // 5, seed)
    rows += noise_rows(model, rooms, setting, method, n_queries, seed)
    rows += entropy_rows(model, rooms, setting, method, n_queries, seed)
    shortcuts, test = shortcut_rows(model, rooms, setting, method, n_queries, seed)
    return rows + shortcuts, [test]


def size_rows(model: ESWM, rooms: RoomConfig, setting: str, method: str, n: int, seed: int) -> list[Row]:
    """Accuracy and validity by how many memories a bank holds, n unseen queries each."""
    n_locations, rows = rooms.n_locations, []
    for kind, share in [("minimal", share) for share in HIDDEN] + [("dense", share) for share in EXTRA]:
        rng = np.random.default_rng([model_seed(seed), 1])
        size = {"hidden" if kind == "minimal" else "extra": int(share * n_locations)}
        banks = sized_banks(rng, max(1, n // QUERIES), rooms, **size)
        right = right_answers(model, banks.transitions(), banks, draw_queries(rng, banks, QUERIES, UNSEEN_ONLY))
        memories = round((banks.source >= 0).sum(1).mean())
        for measure, found in zip(("accuracy", "validity"), right, strict=True):
            estimate = mean_of_banks(found, seed)
            rows.append(Row(setting, method, f"{measure}_{kind}", *estimate, along="memories", at=memories))
    return rows


def noise_rows(model: ESWM, rooms: RoomConfig, setting: str, method: str, n: int, seed: int) -> list[Row]:
    """Accuracy with clean and with noisy minimal banks, and the differences."""
    rng = np.random.default_rng([model_seed(seed), 2])
    banks = spanning_banks(rng, generate_rooms(rng, max(1, n // QUERIES), rooms))
    queries, memories = draw_queries(rng, banks, QUERIES), banks.transitions()
    clean, _ = right_answers(model, memories, banks, queries)
    rows = [Row(setting, method, "accuracy/clean", *mean_of_banks(clean, seed))]
    for name, noise in noises(model.config.n_states, rooms).items():
        noisy = noise(rng, memories, banks.rooms.states)
        right, _ = right_answers(model, noisy, banks, queries)
        rows.append(Row(setting, method, f"accuracy/{name}", *mean_of_banks(right, seed)))
        drop = clean.astype(float) - right
        rows.append(Row(setting, method, f"accuracy_drop/{name}", *mean_of_banks(drop, seed), paper=PAPER[name]))
        rest = ~forgotten(memories, noisy, queries.transitions)
        if not rest.all():
            found = over_rooms(drop, rest, seed)
            rows.append(Row(setting, method, f"accuracy_drop_remembered/{name}", *found))
    return rows


def noises(n_states: int, rooms: RoomConfig) -> dict[str, Callable[..., np.ndarray]]:
    """What makes banks contradict themselves, by name."""
    found: dict[str, Callable[..., np.ndarray]] = {
        "contradictory-states": contradict_states,
        "contradictory-transitions": contradict_transitions,
    }
    if n_states > rooms.n_locations:
        found["strange-states"] = partial(strange_states, vocabulary=range(n_states))
    return found


def entropy_rows(model: ESWM, rooms: RoomConfig, setting: str, method: str, n: int, seed: int) -> list[Row]:
    """Entropy by length of path, and Spearman's correlation with Fieller's interval."""
    rng = np.random.default_rng([model_seed(seed), 3])
    banks = spanning_banks(rng, generate_rooms(rng, max(1, n // QUERIES), rooms))
    lengths, entropies = entropy_by_length(model, rng, banks, QUERIES)
    correlation = spearman(lengths, entropies)
    low, high = np.tanh(np.arctanh(correlation) + np.array([-1.96, 1.96]) * np.sqrt(1.06 / (len(lengths) - 3)))
    rows = [Row(setting, method, "entropy_correlation", correlation, (float(low), float(high)), len(lengths))]
    for length, count in zip(*np.unique(lengths, return_counts=True), strict=True):
        if count >= FEWEST:
            found = mean(entropies[lengths == length], seed)
            rows.append(Row(setting, method, "entropy", *found, along="length", at=int(length)))
    return rows


def shortcut_rows(
    model: ESWM, rooms: RoomConfig, setting: str, method: str, n: int, seed: int
) -> tuple[list[Row], Test]:
    """Divergence after informative and uninformative memories, and the paper's independent two-sample t-test."""
    rng = np.random.default_rng([model_seed(seed), 4])
    banks = spanning_banks(rng, generate_rooms(rng, max(1, n // 5), rooms))  # which offer five queries, on average
    informative, uninformative = shortcut_divergences(model, rng, banks, QUERIES)
    rows = [
        Row(setting, method, f"kl/{name}", *mean(values, seed))
        for name, values in (("informative", informative), ("uninformative", uninformative))
    ]
    test = t_test(setting, f"{method} kl", "informative", informative, "uninformative", uninformative, "t")
    return rows, test


def mean_of_banks(values: np.ndarray, seed: int) -> Estimate:
    """The mean of (B, Q) values, with a bootstrap interval over banks, whose queries share their noise and size."""
    return mean(values.mean(1), seed)._replace(n=values.size)


def plot_integration(rows: Sequence[Row], folder: Path) -> None:
    """Draw FOLDER/integration-SETTING.png and .svg, a panel for each experiment.

    Args:
        rows: of `integration_rows`, of any number of methods and settings; others are left out.
        folder: made if it is missing.

    Raises:
        ImportError: without matplotlib.
    """
    import matplotlib.pyplot as plt

    for setting in dict.fromkeys(row.setting for row in rows if row.metric == "entropy_correlation"):
        some = [row for row in rows if row.setting == setting]
        looks = looks_of(row.method for row in some)

        def of(*metrics: str, some: list[Row] = some) -> list[Row]:
            return [row for row in some if row.metric.split("/")[0] in metrics and row.metric != "accuracy/clean"]

        figure, axes = plt.subplots(1, 4, figsize=(15, 4), layout="constrained")
        curves(axes[0], of("entropy"), looks)
        axes[0].set(xlabel="shortest path over memories", ylabel="entropy of the prediction, nats", ylim=(0, None))
        bars(axes[1], of("kl"), looks, group=_kind)
        axes[1].set(xlabel="KL divergence after one more memory, nats")
        minimal, dense = ([row.at or 0 for row in of(f"accuracy_{kind}")] for kind in ("minimal", "dense"))
        axes[2].axvspan(min(minimal), max(minimal), color=".9", label="minimal banks, ever larger region")
        axes[2].axvspan(max(minimal), max(dense), color="#dfeaf5", label="whole room, ever denser")
        curves(axes[2], of("accuracy_minimal", "accuracy_dense"), looks)
        axes[2].set(ylabel="accuracy, unseen queries", ylim=(None, 1.01))
        bars(axes[3], of("accuracy_drop"), looks, group=_kind)
        axes[3].set(xlabel="accuracy lost to noise")
        place_legend(figure)
        save_figure(figure, folder, f"integration-{setting}")


def _kind(row: Row) -> str:
    """The part of a metric after its measure."""
    return row.metric.split("/")[1]


def main(argv: list[str] | None = None) -> list[Row]:
    options = Parser(__doc__, BySize(0.2, 0.5, 1))
    options.add_count("--queries", (200, 2000, 5000), "of each experiment")
    add_model_option(options, "random-wall")
    args = options.parse_args(argv)
    rows: list[Row] = []
    tests: list[Test] = []
    for name in progress(args.model or ["random-wall"], "integration"):
        model, n_queries = find_model(name, args.device), args.queries
        new, tested = integration_rows(model, RoomConfig.random_wall(3), Path(name).stem, n_queries, args.seed)
        rows, tests = rows + new, tests + tested
    return finish(args, "integration", rows, tests, partial(plot_integration, rows))


if __name__ == "__main__":
    main()
