"""Does the model integrate its memories (paper: "ESWM Integrates Overlapping Memories"), in rooms of Random Wall.

accuracy_minimal, _dense    unseen queries by how many memories the bank holds: minimal banks of ever larger observed
                            regions; then banks of the whole room with ever more transitions; validity_*: any answer
                            that is true in the room counts
accuracy_drop               what noise costs on the same banks and queries (the paper's mix): the memories of one
                            location observe different states there; a memory's copy that ends elsewhere is appended
accuracy_drop_remembered    the same over queries which do not name the state that no memory observes any more
entropy                     of predictions of unseen moves, in nats, by the shortest path from source to end over the
                            memories of a minimal bank; entropy_correlation: Spearman's, of the two
kl                          Kullback-Leibler divergence, in nats, of the prediction before from that after one more
                            memory, which shortens that path (informative) or does not (uninformative)
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from models import add_model_option, find_model
from report import Row, bootstrap, mean, over_rooms, parser, print_table, save_figure, write_json
from scipy import stats
from significance import Test, print_tests
from tqdm import tqdm

from eswm_gym.analysis import (
    contradict_states,
    contradict_transitions,
    entropy_by_length,
    forgotten,
    right_answers,
    shortcut_divergences,
    sized_banks,
    spearman,
)
from eswm_gym.analysis.integration import UNSEEN_ONLY
from eswm_gym.rooms import RoomConfig, draw_queries, generate_rooms, spanning_banks
from eswm_gym.world_model import ESWM

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HIDDEN = (0.4, 0.3, 0.2, 0.1, 0.0)  # shares of the locations that minimal banks do not observe
EXTRA = (1 / 6, 1 / 3, 1 / 2, 2 / 3, 5 / 6, 1.0)  # transitions of dense banks beyond a minimal one, by location
NOISES = {"contradictory-states": contradict_states, "contradictory-transitions": contradict_transitions}
PAPER = {"contradictory-states": 0.01, "contradictory-transitions": 0.10}
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
        rng = np.random.default_rng([seed, 1])
        size = {"hidden" if kind == "minimal" else "extra": int(share * n_locations)}
        banks = sized_banks(rng, max(1, n // QUERIES), rooms, **size)
        right = right_answers(model, banks.transitions(), banks, draw_queries(rng, banks, QUERIES, UNSEEN_ONLY))
        memories = round((banks.source >= 0).sum(1).mean())
        for measure, found in zip(("accuracy", "validity"), right, strict=True):
            rows.append(_mean_of_banks(setting, method, f"{measure}_{kind}/memories-{memories}", found, seed))
    return rows


def noise_rows(model: ESWM, rooms: RoomConfig, setting: str, method: str, n: int, seed: int) -> list[Row]:
    """Accuracy with clean and with noisy minimal banks, and the differences."""
    rng = np.random.default_rng([seed, 2])
    banks = spanning_banks(rng, generate_rooms(rng, max(1, n // QUERIES), rooms))
    queries, memories = draw_queries(rng, banks, QUERIES), banks.transitions()
    clean, _ = right_answers(model, memories, banks, queries)
    rows = [_mean_of_banks(setting, method, "accuracy/clean", clean, seed)]
    for name, noise in NOISES.items():
        noisy = noise(rng, memories, banks.rooms.states)
        right, _ = right_answers(model, noisy, banks, queries)
        rows.append(_mean_of_banks(setting, method, f"accuracy/{name}", right, seed))
        drop = clean.astype(float) - right
        rows.append(_mean_of_banks(setting, method, f"accuracy_drop/{name}", drop, seed, PAPER[name]))
        rest = ~forgotten(memories, noisy, queries.transitions)
        if not rest.all():
            rows.append(over_rooms(setting, method, f"accuracy_drop_remembered/{name}", drop, rest, seed))
    return rows


def entropy_rows(model: ESWM, rooms: RoomConfig, setting: str, method: str, n: int, seed: int) -> list[Row]:
    """Entropy by length of path, and Spearman's correlation with Fieller's interval."""
    rng = np.random.default_rng([seed, 3])
    banks = spanning_banks(rng, generate_rooms(rng, max(1, n // QUERIES), rooms))
    lengths, entropies = entropy_by_length(model, rng, banks, QUERIES)
    correlation = spearman(lengths, entropies)
    low, high = np.tanh(np.arctanh(correlation) + np.array([-1.96, 1.96]) * np.sqrt(1.06 / (len(lengths) - 3)))
    rows = [Row(setting, method, "entropy_correlation", correlation, (float(low), float(high)), len(lengths))]
    for length, count in zip(*np.unique(lengths, return_counts=True), strict=True):
        if count >= FEWEST:
            rows.append(mean(setting, method, f"entropy/length-{length}", entropies[lengths == length], seed))
    return rows


def shortcut_rows(
    model: ESWM, rooms: RoomConfig, setting: str, method: str, n: int, seed: int
) -> tuple[list[Row], Test]:
    """Divergence after informative and uninformative memories, and the paper's independent two-sample t-test."""
    rng = np.random.default_rng([seed, 4])
    banks = spanning_banks(rng, generate_rooms(rng, max(1, n // 5), rooms))  # which offer five queries, on average
    informative, uninformative = shortcut_divergences(model, rng, banks, QUERIES)
    rows = [
        mean(setting, method, f"kl/{name}", values, seed)
        for name, values in (("informative", informative), ("uninformative", uninformative))
    ]
    result = stats.ttest_ind(informative, uninformative)
    low, high = result.confidence_interval(0.95)
    test = Test(
        setting,
        f"{method} kl",
        "t",
        ("informative", "uninformative"),
        (len(informative), len(uninformative)),
        float(result.statistic),
        (float(result.df),),
        float(result.pvalue),
        rows[0].value - rows[1].value,
        (float(low), float(high)),
    )
    return rows, test


def _mean_of_banks(
    setting: str, method: str, metric: str, values: np.ndarray, seed: int, paper: float | None = None
) -> Row:
    """The mean of (B, Q) values, with a bootstrap interval over banks, whose queries share their noise and size."""
    by_bank = values.mean(1)
    return Row(setting, method, metric, float(by_bank.mean()), bootstrap(by_bank, seed), values.size, paper)


def plot_integration(rows: Iterable[Row], folder: Path) -> None:
    """Draw FOLDER/integration-SETTING.png and .svg, a panel for each experiment and a colour for each method.

    Args:
        rows: of `integration_rows`, of any number of methods and settings; others are left out.
        folder: made if it is missing.

    Raises:
        ImportError: without matplotlib.
    """
    import matplotlib.pyplot as plt

    rows = list(rows)
    for setting in dict.fromkeys(row.setting for row in rows if row.metric == "entropy_correlation"):
        figure, axes = plt.subplots(1, 4, figsize=(15, 3.6))
        methods = dict.fromkeys(row.method for row in rows if row.setting == setting)
        for i, method in enumerate(methods):
            found = {row.metric: row for row in rows if (row.setting, row.method) == (setting, method)}
            _curve(axes[0], found, ["entropy"], color=f"C{i}", label=method)
            _bars(axes[1], found, ["kl/uninformative", "kl/informative"], i, len(methods))
            _curve(axes[2], found, ["accuracy_minimal", "accuracy_dense"], color=f"C{i}", label=method)
            _bars(axes[3], found, [f"accuracy_drop/{name}" for name in NOISES], i, len(methods))
        axes[0].set(xlabel="shortest path over memories", ylabel="entropy of the prediction, nats", ylim=(0, None))
        axes[0].xaxis.get_major_locator().set_params(integer=True)
        axes[1].set(xlabel="one more memory", ylabel="KL divergence, nats", yscale="log")
        sizes = [
            [_number(row) for row in rows if row.metric.startswith(f"accuracy_{k}/")] for k in ("minimal", "dense")
        ]
        axes[2].axvspan(min(sizes[0]), max(sizes[0]), color=".9", label="minimal, ever larger region")
        axes[2].axvspan(max(sizes[0]), max(sizes[1]), color="#dfeaf5", label="whole room, ever denser")
        axes[2].set(xlabel="memories", ylabel="accuracy, unseen queries", ylim=(None, 1.01))
        axes[3].set(ylabel="accuracy lost to noise")
        for x, name in enumerate(NOISES):
            axes[3].plot([x - 0.45, x + 0.45], 2 * [PAPER[name]], "k:", label="paper" if x == 0 else None)
        for axis in axes:
            axis.legend(fontsize=8)
        save_figure(figure, folder, f"integration-{setting}")


def _curve(axis: Axes, found: dict[str, Row], metrics: list[str], color: str, label: str) -> None:
    """The values of METRIC/NAME-NUMBER over the numbers, with their intervals."""
    points = [row for name, row in found.items() if name.split("/")[0] in metrics]
    x = [_number(row) for row in points]
    axis.plot(x, [row.value for row in points], color=color, marker="o", markersize=3, label=label)
    axis.fill_between(x, *np.array([row.ci95 for row in points]).T, color=color, alpha=0.2, linewidth=0)


def _bars(axis: Axes, found: dict[str, Row], metrics: list[str], i: int, n: int) -> None:
    """One bar for each metric, the i-th of n beside each other, with its interval."""
    shown = [found[metric] for metric in metrics]
    value = np.array([row.value for row in shown])
    ends = np.array([row.ci95 for row in shown]).T
    x = np.arange(len(shown)) + (i - (n - 1) / 2) * 0.8 / n
    axis.bar(x, value, 0.8 / n, yerr=abs(ends - value), color=f"C{i}", capsize=2, label=shown[0].method)
    axis.set_xticks(range(len(shown)), [metric.split("/")[1].replace("-", "\n") for metric in metrics])


def _number(row: Row) -> int:
    return int(row.metric.rsplit("-", 1)[1])


def main(argv: list[str] | None = None) -> list[Row]:
    options = parser(__doc__)
    options.add_argument("--queries", type=int, default=5000, help="of each experiment (default 5000)")
    add_model_option(options, "random-wall")
    options.add_argument("--plot", type=Path, metavar="DIR", help="draw figures there (needs matplotlib)")
    args = options.parse_args(argv)
    rows: list[Row] = []
    tests: list[Test] = []
    for name in tqdm(args.model or ["random-wall"], disable=None):
        model, n_queries = find_model(name, args.device), 200 if args.quick else args.queries
        new, tested = integration_rows(model, RoomConfig.random_wall(3), Path(name).stem, n_queries, args.seed)
        rows, tests = rows + new, tests + tested
    print_table(rows)
    print_tests(tests)
    if args.json:
        write_json(args.json, "integration", args.seed, rows, tests)
    if args.plot:
        plot_integration(rows, args.plot)
    return rows


if __name__ == "__main__":
    main()
