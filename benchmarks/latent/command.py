"""The map inside: do the world model's activations form the room's map (paper: "Spatial Maps Emerge Robustly Within
ESWM's Latent Space")? Beside each model a random network of its shape, `untrained`.

  srsa                Spearman's correlation of cosine distances between mean activations (action prediction, 5 banks)
                      and Euclidean distances between locations; srsa_end, srsa_source: the other tasks, fewer rooms
  distance_probe      one linear layer on activations of action predictions from A, B and C to A: is B farther from A
                      than C is? 3,000 triplets to learn, 1,000 held out, each of a room of its own
  ..._own_moves       the same, the predicted moves being random ones from A, B and C; `positions` has the locations
                      themselves, one-hot: what a sum of three scores can reach at most, however good the map
  latent_r2           R2 of the fit of shortest ways through the latent space (end prediction, one bank) by shortest
                      paths, 20 pairs a room; a step costs the angle between neighbours, latent_r2_cosine: their cosine
                      distance, as in the paper; latent_r2_tasks: end and source prediction side by side;
                      latent_r2_banks: activations averaged over 5 banks
  isomap_disparity    Procrustes' disparity of the room and its two-dimensional ISOMAP (end prediction, six banks,
                      cosine distance, 40 neighbours), 0 at best; isomap_correlation: Spearman's, of their distances
  clusters-*          two clusters of memories side by side, no memory from one to the other: the probability of the
                      true neighbour across the gap, of any state of the other cluster, of staying, of "I don't know";
                      `ideal` knows all that can be known of how they lie
  paper-rooms         other architectures and EPN in five kinds of rooms: isomap_disparity, isomap_correlation, and
                      isomap_srsa, sRSA of the same activations

Layers, and the radius of latent neighbours, are chosen on other rooms than those of the report; `--json` and
`--by-layer` give every layer. In MiniGrid, from action prediction: srsa_one_heading among the poses of each heading,
srsa_cells among cells, activations averaged over headings; the control has the same registration of views.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from common.cli import BySize, Parser, finish
from common.models import add_model_option, find_model
from common.progress import progress
from common.rows import Found, Row, Test

from eswm_gym.analysis import untrained
from eswm_gym.world_model import available
from latent.measures import MEASURES
from latent.models import compare_rows
from latent.subjects import QUICK, Sizes, Subject
from latent.views import grid_rows


def main(argv: list[str] | None = None) -> list[Row]:
    options = Parser(__doc__, BySize(0.5, 4, 10))
    options.add_count("--rooms", (6, 100, 1000), "rooms of srsa")
    add_model_option(options, "random-wall and minigrid")
    options.add_argument("--by-layer", action="store_true", help="print the rows of each layer too")
    args = options.parse_args(argv)
    sizes = QUICK if args.quick else Sizes()
    sizes = replace(sizes, srsa=args.rooms, tasks=min(sizes.tasks, args.rooms))
    measures: list[Callable[[], Found]] = []
    for name in args.model or ["random-wall", "minigrid"]:
        model = find_model(name, args.device)
        label = "eswm" if name in available() else Path(name).stem
        subject = Subject(label, model, untrained(model.config, args.seed).to(args.device), args.seed)
        of_model = [grid_rows] if model.codec.cells > 1 else MEASURES
        measures += [partial(measure, subject, sizes) for measure in of_model]
    if not args.model:
        measures.append(partial(compare_rows, args.seed, sizes, args.device))
    rows: list[Row] = []
    tests: list[Test] = []
    drawings: list[Callable[[Path], None]] = []
    for measure in progress(measures, "latent"):
        found = measure()
        rows, tests = rows + found.rows, tests + list(found.tests)
        drawings.append(found.draw)

    def draw(folder: Path) -> None:
        for drawing in drawings:
            drawing(folder)

    shown = [row for row in rows if args.by_layer or (row.along is None and "/" not in row.metric)]
    return finish(args, "latent", rows, tests, draw, shown=shown)
