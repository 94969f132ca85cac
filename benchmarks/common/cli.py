"""The options that benchmarks have, and what each does in the end: print, write and draw what it found."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from common import plots, reports
from common.printing import print_blocks, print_sentences
from common.rows import Row, Test
from common.tests import corrected, print_tests
from eswm_gym.runs import use_free_cores

# Seeds of what is reported; docs/benchmarks.md says which seeds training and choice use.
AGENT_ROOMS = 2 * 10**9  # agents meet the rooms of seeds 2 * 10**9 + 10**6 * seed and on: nothing was chosen on them
MODEL_ROOMS = 3 * 10**9  # models are asked about the rooms of seed 3 * 10**9 + seed: nothing was chosen on them


class BySize(NamedTuple):
    """Something for each size of a run: `--quick`, neither, and `--full`."""

    quick: Any
    usual: Any
    full: Any

    def of(self, args: argparse.Namespace) -> Any:
        """What there is for the size that a command has."""
        return self.quick if args.quick else self.full if args.full else self.usual


class Parser(argparse.ArgumentParser):
    """The options of every benchmark; parsed arguments know which command they are of.

    Before a run starts, it says about how long it takes.

    Args:
        description: what the benchmark measures; its script's docstring.
        minutes: what a run of each size takes on two cores where nothing else is chosen.
    """

    def __init__(self, description: str | None, minutes: BySize) -> None:
        super().__init__(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
        self.settings: BySize | None = None
        self.minutes, self.counts = minutes, dict[str, BySize]()
        self.parts: dict[str, Mapping[str, float]] = {}
        size = self.add_mutually_exclusive_group()
        takes = f"({_duration(minutes.quick)})"
        size.add_argument("--quick", action="store_true", help=f"a small run that shows that everything works {takes}")
        takes = f"({_duration(minutes.full)}; without it {_duration(minutes.usual)})"
        size.add_argument("--full", action="store_true", help=f"a long run, as for the documentation's tables {takes}")
        self.add_argument("--seed", type=int, default=0, help="seed of rooms and agents (default 0)")
        self.add_argument("--device", default="cpu", help="where the model runs: cpu or cuda (default cpu)")
        self.add_argument("--tests", action="store_true", help="print every test of significance")
        self.add_argument("--json", type=Path, metavar="FILE", help="write the rows there as well")
        self.add_argument("--plot", type=Path, metavar="DIR", help="draw figures there (needs matplotlib)")

    def add_count(self, option: str, sizes: tuple[int, int, int], what: str) -> None:
        """Let the user say how many there are; otherwise it follows from the size of the run."""
        self.counts[option.strip("-")] = BySize(*sizes)
        quick, usual, full = sizes
        self.add_argument(option, type=_count, help=f"{what} (default {usual}, --quick {quick}, --full {full})")

    def add_parts(self, option: str, weights: Mapping[str, float]) -> None:
        """Let the user choose some of the parts of a run; otherwise all; `weights` are of each in the time of all."""
        self.parts[option.strip("-")] = weights
        self.add_argument(option, nargs="+", choices=weights, default=list(weights), help="(default all)")

    def add_settings(
        self,
        settings: Iterable[str],
        quick: Iterable[str] = (),
        usual: Iterable[str] = (),
        word: str = "setting",
        weight: Callable[[str], float] = lambda setting: 1,
    ) -> None:
        """Let the user choose some of these settings, as `settings`; otherwise they follow from the size of the run.

        Args:
            settings: all of them, which are those of a full run.
            quick, usual: those of a run of that size; none stand for all.
            word: what they are called.
            weight: of each in the time that a run takes.
        """
        everything = tuple(settings)
        self.word, self.weight = word, weight
        self.settings = BySize(tuple(quick) or everything, tuple(usual) or everything, everything)
        default = ", ".join(usual) or "all"
        self.add_argument("settings", nargs="*", metavar=word.upper(), help=f"only these (default: {default})")

    def parse_args(self, args=None, namespace=None):  # type: ignore[override]
        parsed = super().parse_args(args, namespace)
        if self.settings:
            parsed.chosen = bool(parsed.settings)
            if unknown := set(parsed.settings) - set(self.settings.full):
                there_are = ", ".join(self.settings.full)
                self.error(f"no {self.word} {', '.join(sorted(unknown))}; there are {there_are}")
            parsed.settings = list(dict.fromkeys(parsed.settings)) or list(self.settings.of(parsed))
        for name in self.parts:
            setattr(parsed, name, list(dict.fromkeys(getattr(parsed, name))))
        use_free_cores()
        print(f"this takes about {_duration(self._minutes(parsed))} on two cores", file=sys.stderr, flush=True)
        for name, sizes in self.counts.items():
            if getattr(parsed, name) is None:
                setattr(parsed, name, sizes.of(parsed))
        parsed.options = list(sys.argv[1:] if args is None else args)
        return parsed

    def _minutes(self, parsed: argparse.Namespace) -> float:
        """What a run takes: between and beyond the three sizes in proportion to its counts, each an equal part."""
        minutes = [self.minutes.of(parsed)] if not self.counts else []
        for name, sizes in self.counts.items():
            if (count := getattr(parsed, name)) is None:
                minutes.append(self.minutes.of(parsed))
            else:
                minutes.append(float(np.interp(count, sizes, self.minutes)) * max(1, count / sizes.full))
        chosen = 1.0
        if self.settings:
            chosen = sum(map(self.weight, parsed.settings)) / sum(map(self.weight, self.settings.of(parsed)))
        for name, weights in self.parts.items():
            chosen *= sum(weights[part] for part in getattr(parsed, name)) / sum(weights.values())
        return chosen * sum(minutes) / len(minutes)


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"must be a number of 1 or more, got {text}")
    return int(text)


def _duration(minutes: float) -> str:
    """In words, with two digits."""
    if minutes < 1.5:
        return f"{max(10, round(60 * minutes, -1)):.0f} seconds"
    return f"{minutes:.2g} minutes" if minutes < 90 else f"{minutes / 60:.2g} hours"


def agent_parser(description: str | None, minutes: BySize, episodes: tuple[int, int, int], what: str) -> Parser:
    """The options of a benchmark of agents.

    Args:
        description, minutes: see `Parser`.
        episodes: how many there are in a run of each size, unless the user says otherwise.
        what: what is counted.
    """
    options = Parser(description, minutes)
    options.add_count("--episodes", episodes, what)
    options.add_argument(
        "--model",
        default="random-wall",
        metavar="NAME|FILE",
        help="a model of hexagonal rooms, pretrained or saved (default %(default)s)",
    )
    return options


def room_seeds(seed: int, n: int) -> range:
    """Seeds of the n rooms that agents meet under a seed of the benchmark."""
    first = AGENT_ROOMS + 10**6 * seed
    return range(first, first + n)


def model_seed(seed: int) -> int:
    """Seed of the rooms that models are asked about under a seed of the benchmark."""
    return MODEL_ROOMS + seed


def finish(
    args: argparse.Namespace,
    name: str,
    rows: Sequence[Row],
    tests: Sequence[Test] = (),
    draw: Callable[[Path], None] | None = None,
    show: Callable[[Sequence[Row]], None] | None = None,
    shown: Sequence[Row] | None = None,
    replay: str | None = None,
) -> list[Row]:
    """Print what a benchmark found, write it as JSON and draw it as the options say.

    Args:
        args: what `Parser` made of the command.
        name: of the benchmark's script or folder.
        rows, tests: what it found.
        draw: draws figures into a folder; without it, the rows that are along a number are drawn as curves.
        show: prints the rows; without it, they are printed as blocks.
        shown: the rows that blocks show; None: all.
        replay: the options of `eswm_gym.replay` that show one of its episodes.
    """
    tests = corrected(tests)
    if show is None:
        print_blocks(rows if shown is None else shown, tests)
    else:
        show(rows)
        print_sentences(tests)
    if args.tests:
        print_tests(tests)
    if replay is not None:
        print(f"\nTo watch an episode: python -m eswm_gym.replay {replay} --out episode.html")
    if args.json:
        reports.write(args.json, name, args.seed, command(name, args.options), rows, tests)
    if args.plot:
        models = vars(args).get("model") or ()
        models = ", ".join([models] if isinstance(models, str) else map(str, models))
        about = [command(name, args.options), models, f"seed {args.seed}", plots.n_text(rows)]
        with plots.captioned(" · ".join(filter(None, about))):
            (draw or (lambda folder: plots.draw_settings(rows, folder, name)))(args.plot)
    return list(rows)


def command(name: str, options: Iterable[str]) -> str:
    """The command as a user would type it, without what is this machine's: where output goes, and folders of files."""
    script = f"{name}.py" if (Path(__file__).parents[1] / f"{name}.py").exists() else name
    words, rest = ["python", f"benchmarks/{script}"], iter(options)
    for word in rest:
        if word in ("--json", "--plot"):
            next(rest, None)
        elif not word.startswith(("--json=", "--plot=")):
            words.append(Path(word).name if Path(word).is_absolute() else word)
    return " ".join(words)
