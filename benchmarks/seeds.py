"""What the seed of a training run does: the same training with several seeds, measured on rooms never trained on.

Needs the folder of runs that this makes, one core each (7 core-hours for all):
  python -m eswm_gym.world_model.sweep random-wall --seeds 0 1 2 3 4 --minutes 30 --out RUNS
  python -m eswm_gym.world_model.sweep rw-t oa-t --seeds 0 1 2 3 4 --minutes 10 --out RUNS
  export OMP_NUM_THREADS=1; for seed in 0 1 2 3 4; do
    python -m eswm_gym.agents.baselines.train_epn --minutes 30 --seed $seed --out RUNS/epn/seed-$seed
    python -m eswm_gym.agents.baselines.train_a2c_lstm --seed $seed --out RUNS/a2c-lstm/seed-$seed
  done

Models are asked as in `predict`: accuracy by kind of query and component, the mean over seeds and a bootstrap interval
over them; each one along `seed`. Agents navigate as in `navigate`, in rooms of 19 and 37 locations, `a2c-lstm` in the
one room that it was trained in: success rate, and SPL, the shortest length by the steps taken, 0 for failures (Anderson
et al. 2018). Of all runs and tasks, with a model's accuracies in a setting, or an agent's SPL in each, as scores:
  iqm      interquartile mean, with a stratified bootstrap interval
  profile  share of the runs and tasks whose score is greater than a threshold
Which run is shipped is not chosen by these rooms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from common.aggregates import interquartile_mean, share_above, stratified
from common.cli import BySize, Parser, finish, model_seed, room_seeds
from common.intervals import mean
from common.plots import by_setting, draw_curves
from common.progress import progress
from common.rows import Row
from robust import room_of

from eswm_gym.agents import Agent, ESWMAgent
from eswm_gym.agents.baselines import A2CLSTMAgent, EPNAgent
from eswm_gym.agents.episodes import Episode, Setup, run
from eswm_gym.world_model import ESWM, load_model
from eswm_gym.world_model.evaluate import judge
from eswm_gym.world_model.presets import PRESETS

NAVIGATE = {"random-wall-19": "ESWM-RandomWall19-v0", "random-wall-37": "ESWM-RandomWall-v0"}
THRESHOLDS = tuple(np.linspace(0, 0.95, 20).round(2).tolist()) + (0.99,)


def runs_of(folder: Path, name: str) -> dict[int, Path]:
    """The finished runs of a name, by seed."""
    found = sorted((folder / name).glob(f"seed-*/{name}.safetensors"))
    return {int(path.parent.name.removeprefix("seed-")): path.with_suffix("") for path in found}


def model_rows(name: str, models: Mapping[int, ESWM], n_rooms: int, seed: int) -> list[Row]:
    """Accuracies of a preset's runs in its settings, each and their mean."""
    rows: list[Row] = []
    for setting, source in PRESETS[name].settings.items():
        found = [judge(model, source, n_rooms, model_seed(seed)).metrics() for model in models.values()]
        metrics = [metric for metric in found[0] if metric.startswith("accuracy/")]
        scores = np.array([[figures[metric] for metric in metrics] for figures in found])
        for metric, values in zip(metrics, scores.T.tolist(), strict=True):
            rows.append(Row(setting, name, metric, *mean(values, seed)))
            rows += [
                Row(setting, name, metric, value, along="seed", at=run)
                for run, value in zip(models, values, strict=True)
            ]
        rows += aggregate_rows(setting, name, scores, seed)
    return rows


def agent_rows(name: str, agents: Sequence[Agent], setups: Mapping[str, list[Setup]], seed: int) -> list[Row]:
    """Success rate and SPL of an agent's runs in each setting, and SPL over all settings."""
    rows, scores = list[Row](), list[list[float]]()
    for setting, some in setups.items():
        episodes = [run(some, agent, walks_before(agent, some, seed)) for agent in agents]
        success = [float(np.mean([e.success for e in found])) for found in episodes]
        optimal = [float(np.mean([efficiency(e) for e in found])) for found in episodes]
        rows.append(Row(setting, name, "success_rate", *mean(success, seed)))
        rows.append(Row(setting, name, "spl", *mean(optimal, seed)))
        scores.append(optimal)
    return rows + aggregate_rows("navigate", name, np.array(scores).T, seed)


def walks_before(agent: Agent, setups: Sequence[Setup], seed: int) -> Sequence[np.ndarray] | None:
    """EPN's memories of the rooms; of other agents the bank of the environment."""
    if not isinstance(agent, EPNAgent):
        return None
    return agent.fill_memories(list(map(room_of, setups)), seed=seed)


def efficiency(episode: Episode) -> float:
    """Shortest length by steps taken, 0 where the goal was not reached."""
    return episode.shortest / episode.steps if episode.success else 0.0


def aggregate_rows(setting: str, name: str, scores: np.ndarray, seed: int) -> list[Row]:
    """Interquartile mean and performance profile of scores (R, T)."""
    rows = [Row(setting, name, "iqm", *stratified(interquartile_mean, scores, seed))]
    for at in THRESHOLDS:
        share = stratified(partial(share_above, threshold=at), scores, seed)
        rows.append(Row(setting, name, "profile", *share, along="score", at=at))
    return rows


def rows_of(folder: Path, n_rooms: int, n_episodes: int, seed: int, device: str) -> list[Row]:
    """Rows of all runs in a folder."""
    rows: list[Row] = []
    names = [path.name for path in sorted(folder.iterdir()) if runs_of(folder, path.name)]
    seeds = room_seeds(seed, n_episodes)
    anywhere = {setting: [Setup(env_id, s) for s in seeds] for setting, env_id in NAVIGATE.items()}
    for name in progress(names, "seeds"):
        runs = runs_of(folder, name)
        if name in PRESETS:
            models = {run: load_model(path, device) for run, path in runs.items()}
            rows += model_rows(name, models, n_rooms, seed)
        if name == "random-wall":
            rows += agent_rows("eswm", list(map(ESWMAgent, models.values())), anywhere, seed)
        elif name == "epn":
            rows += agent_rows(name, [EPNAgent.from_pretrained(path, device) for path in runs.values()], anywhere, seed)
        elif name == "a2c-lstm":
            policies = [A2CLSTMAgent.from_pretrained(path, device) for path in runs.values()]
            there = [Setup(NAVIGATE["random-wall-19"], s, options={"room": policies[0].room}) for s in seeds]
            rows += agent_rows(name, policies, {"trained-room": there}, seed)
    return rows


def draw(rows: Sequence[Row], folder: Path) -> None:
    """Draw FOLDER/seeds.png and .svg: performance profiles, a panel for each setting."""
    draw_curves([row for row in rows if row.metric == "profile"], folder, "seeds", panel=by_setting)


def main(argv: list[str] | None = None) -> list[Row]:
    options = Parser(__doc__, BySize(0.3, 2.5, 9))
    options.add_argument("runs", type=Path, metavar="RUNS", help="folder of the runs")
    options.add_count("--rooms", (20, 100, 450), "of each setting of a model")
    options.add_count("--episodes", (5, 50, 200), "of each setting of an agent")
    args = options.parse_args(argv)
    if not args.runs.is_dir():
        options.error(f"{args.runs} is no folder")
    rows = rows_of(args.runs, args.rooms, args.episodes, args.seed, args.device)
    if not rows:
        options.error(f"{args.runs} holds no finished runs, such as RUNS/rw-t/seed-0/rw-t.safetensors")
    return finish(args, "seeds", rows, draw=partial(draw, rows))


if __name__ == "__main__":
    main()
