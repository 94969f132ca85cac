"""Lists what there is: `python -m eswm_gym`."""

from __future__ import annotations

import argparse

import gymnasium as gym

import eswm_gym
from eswm_gym.world_model.pretrained import available, model_info

COMMANDS = {
    "python -m eswm_gym.replay": "writes an episode as a page to scrub through",
    "python -m eswm_gym.world_model.train": "trains a model (extra train)",
    "python -m eswm_gym.world_model.sweep": "trains several at once (extra ray)",
    "python -m eswm_gym.agents.latent_radius": "chooses a model's latent radius",
}


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    argparse.ArgumentParser("python -m eswm_gym", description=__doc__).parse_args(arguments)
    print(f"eswm_gym {eswm_gym.__version__}\n\nEnvironments, for gymnasium.make:")
    for env_id, spec in gym.registry.items():
        if env_id.startswith("ESWM-"):
            print(f"  {env_id:30} {spec.kwargs['task']}, at most {spec.max_episode_steps} steps")
    print("\nModels, for ESWMAgent.from_pretrained:")
    for name in available():
        config = model_info(name)["config"]
        print(f"  {name:30} {config['n_states']} states or classes, {config['n_actions']} actions")
    print("\nCommands, each with --help:")
    for command, what in COMMANDS.items():
        print(f"  {command:42} {what}")


if __name__ == "__main__":
    main()
