"""Train A2C-LSTM: `python -m eswm_gym.agents.baselines.train_a2c_lstm`.

A2C of stable-baselines3 in one Random Wall room of 19 locations, for 5,000 episodes (paper: appendix "Baseline
Navigational Agent"). Ctrl-C leaves a checkpoint that `--resume` continues. It writes the weights and figures of every
start and goal of its room to `runs/a2c-lstm`.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numpy as np
from stable_baselines3 import A2C
from stable_baselines3.common.vec_env import DummyVecEnv

from eswm_gym.agents.baselines.a2c_lstm import A2CLSTMAgent, one_room
from eswm_gym.agents.baselines.checkpoints import save_policy
from eswm_gym.agents.baselines.training import Training, add_options
from eswm_gym.agents.episodes import Episode, Setup, optimality, run_in_step
from eswm_gym.rooms import Room, RoomConfig
from eswm_gym.runs import use_free_cores

ROOM_SEED = 0
LR = 1e-3
A2C_OPTIONS: dict[str, Any] = {"n_steps": 5, "gamma": 0.99, "ent_coef": 0.01}
N_ENVS = 2


def train_room() -> Room:
    """The one room: of 19 locations, with a wall."""
    return Room.generate(np.random.default_rng(ROOM_SEED), RoomConfig.random_wall(2, no_wall=0.0, hidden=0.0))


def arrived(info: dict[str, Any], done: bool) -> dict[str, float] | None:
    """Success of the episodes that ended."""
    return {"success_rate": float(info["is_success"])} if done else None


def evaluate(agent: A2CLSTMAgent) -> dict[str, float]:
    """Success rate and path optimality from every start to every goal of the agent's room, all in step."""
    room = agent.room
    pairs = [(s, g) for s in np.flatnonzero(~room.walls).tolist() for g in np.flatnonzero(room.distances_from(s) > 0)]
    episodes = [
        Episode(Setup(partial(one_room, room), 0, options={"start": start, "goal": int(goal)}), agent.spawn(i))
        for i, (start, goal) in enumerate(pairs)
    ]
    optimalities = optimality(run_in_step(episodes))
    figures = {"success_rate": len(optimalities) / len(pairs), "n": len(pairs)}
    return figures | ({"path_optimality": float(np.mean(optimalities))} if optimalities else {})


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m eswm_gym.agents.baselines.train_a2c_lstm", description=__doc__)
    parser.add_argument("--episodes", type=int, default=5000, help="in all (default 5000)")
    add_options(parser, "a2c-lstm")
    args = parser.parse_args(argv)
    if args.episodes <= 0 or args.seed < 0:
        parser.error("--episodes must be greater than 0, --seed not negative")
    return args


def main(argv: list[str] | None = None) -> None:
    args = parse_args(argv)
    use_free_cores()
    room = train_room()
    config = {"room": room.to_dict(), "lstm": {"dim": 128, "hidden": 256}}
    training = Training(
        args.out, args.seed, lambda run: run.episodes / args.episodes, arrived, LR, args.report_every
    )  # fmt: skip
    model = A2C(
        "MultiInputPolicy", DummyVecEnv([partial(one_room, room)] * N_ENVS), training.learning_rate, seed=args.seed,
        device=args.device, policy_kwargs=A2CLSTMAgent.policy_options(config), **A2C_OPTIONS,
    )  # fmt: skip
    if args.resume:
        training.resume(model)
    if not training.run(model):
        print(f"stopped after {training.episodes} episodes; continue with --resume --out {args.out}")
        return
    model.policy.set_training_mode(False)
    metrics = {"random-wall-19": evaluate(A2CLSTMAgent(model.policy, config))}
    trained = {**training.summary(), "n_envs": N_ENVS, **A2C_OPTIONS}
    save_policy(model.policy, args.out / "a2c-lstm", "a2c-lstm", config, training=trained, metrics=metrics)
    print("  ".join(f"{name} {value:.3f}" for name, value in metrics["random-wall-19"].items()))
    print(f"saved {args.out / 'a2c-lstm'}.safetensors")


if __name__ == "__main__":
    main()
