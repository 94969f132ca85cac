"""Train EPN: `python -m eswm_gym.agents.baselines.train_epn --minutes 60`.

PPO of stable-baselines3 over random rooms of 19 and of 37 locations, a new one in each episode of 300 steps with many
goals (paper: appendix "Episodic Planning Networks"; there IMPALA, for 1.14e9 steps). To get somewhere in an hour of
one core, the training reward shows progress: each step nearer to the goal earns 1, each step farther costs 1.
Ctrl-C leaves a checkpoint that `--resume` continues. It writes the weights and held-out figures to `runs/epn`.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

from eswm_gym.agents.baselines.checkpoints import save_policy
from eswm_gym.agents.baselines.epn import EPNAgent, EPNTorso, many_goals, max_steps, walk
from eswm_gym.agents.baselines.training import Training, add_options
from eswm_gym.rooms import Room, RoomConfig
from eswm_gym.runs import use_free_cores
from eswm_gym.wrappers import EpisodicMemory

EPISODE_STEPS = 300  # the last third is what is measured
N_STATES = 37
CONFIG = {"n_states": N_STATES, "torso": {"dim": 64, "heads": 4, "iterations": 5}, "hidden": 64}
ROOMS = {
    f"random-wall-{n}": RoomConfig.random_wall(radius, states=tuple(range(N_STATES)), hidden=0.0)
    for n, radius in ((19, 2), (37, 3))
}
LR = 1e-3
PPO_OPTIONS: dict[str, Any] = {
    "n_steps": 16,
    "batch_size": 128,
    "n_epochs": 3,
    "gamma": 0.7,
    "gae_lambda": 0.9,
    "ent_coef": 0.003,
}


def make_model(training: Training, n_envs: int, seed: int, device: str) -> PPO:
    """PPO on environments of every size in turn, whose episodes end at different times."""
    families = list(ROOMS.values()) * n_envs
    env = DummyVecEnv([partial(_environment, rooms) for rooms in families[:n_envs]])
    model = PPO(
        "MultiInputPolicy", env, training.learning_rate, seed=seed, device=device,
        policy_kwargs=EPNAgent.policy_options(CONFIG), **PPO_OPTIONS,
    )  # fmt: skip
    env.set_options([{"elapsed": EPISODE_STEPS * i // n_envs} for i in range(n_envs)])
    return model


def _environment(rooms: RoomConfig) -> EpisodicMemory:
    return EpisodicMemory(many_goals(rooms, EPISODE_STEPS, progress_reward=1.0))


def late_goals(info: dict[str, Any], done: bool) -> dict[str, float] | None:
    """Success, and optimality of what succeeds, of the goals that were given in an episode's last third."""
    result = info.get("goal_result")
    if result is None or not EPISODE_STEPS * 2 // 3 <= result["began"] < EPISODE_STEPS:
        return None
    figures = {"success_rate": float(result["success"])}
    return figures | ({"path_optimality": result["shortest"] / result["steps"]} if result["success"] else {})


def evaluate(agent: EPNAgent, n_rooms: int, seed: int = 10**6) -> dict[str, dict[str, float]]:
    """Success rate and path optimality in fresh rooms of the goals given in the last third, each walked to its end."""
    metrics = {}
    for setting, family in ROOMS.items():
        rng = np.random.default_rng(seed)
        rooms = [Room.generate(rng, family) for _ in range(n_rooms)]
        _, results = walk(agent, rooms, EPISODE_STEPS + max_steps(family.radius), seed)
        goals = [figures for room in results for goal in room if (figures := late_goals({"goal_result": goal}, False))]
        metrics[setting] = {
            name: float(np.mean([goal[name] for goal in goals if name in goal]))
            for name in ("success_rate", "path_optimality")
            if any(name in goal for goal in goals)
        } | {"n": len(goals)}
    return metrics


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m eswm_gym.agents.baselines.train_epn", description=__doc__)
    budget = parser.add_mutually_exclusive_group()
    budget.add_argument("--minutes", type=float, default=60.0, help="train for so long in all (default 60)")
    budget.add_argument("--steps", type=int, help="or for so many steps in all")
    parser.add_argument("--n-envs", type=int, default=64, help="environments side by side (default 64)")
    parser.add_argument("--eval-rooms", type=int, default=200, help="rooms of each size of the evaluation")
    add_options(parser, "epn")
    args = parser.parse_args(argv)
    if not args.minutes > 0 or (args.steps is not None and args.steps <= 0):  # nan is not greater either
        parser.error("--minutes and --steps must be greater than 0")
    if args.n_envs <= 0 or args.eval_rooms <= 0 or args.seed < 0:
        parser.error("--n-envs and --eval-rooms must be greater than 0, --seed not negative")
    return args


def main(argv: list[str] | None = None) -> None:
    args = parse_args(argv)
    use_free_cores()

    def share_done(training: Training) -> float:
        return training.num_timesteps / args.steps if args.steps else training.seconds / (60 * args.minutes)

    training = Training(args.out, args.seed, share_done, late_goals, LR, args.report_every)
    model = make_model(training, args.n_envs, args.seed, args.device)
    if args.resume:
        training.resume(model)
    torso = model.policy.features_extractor
    assert isinstance(torso, EPNTorso)
    torso.low_precision = True
    complete = training.run(model)
    torso.low_precision = False
    if not complete:
        print(f"stopped after {training.num_timesteps} steps; continue with --resume --out {args.out}")
        return
    model.policy.set_training_mode(False)
    metrics = evaluate(EPNAgent(model.policy, CONFIG), args.eval_rooms)
    trained = {**training.summary(), "n_envs": args.n_envs, **PPO_OPTIONS}
    save_policy(model.policy, args.out / "epn", "epn", CONFIG, training=trained, metrics=metrics)
    for setting, found in metrics.items():
        print(f"{setting:16}" + "".join(f"  {name} {value:.3f}" for name, value in found.items()))
    print(f"saved {args.out / 'epn'}.safetensors")


if __name__ == "__main__":
    main()
