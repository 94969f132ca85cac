"""`python -m eswm_gym`."""

import gymnasium as gym

import eswm_gym  # noqa: F401
from eswm_gym.__main__ import COMMANDS, main
from eswm_gym.world_model import available


def test_it_lists_environments_models_and_commands(capsys):
    main([])
    said = capsys.readouterr().out
    ids = [env_id for env_id in gym.registry if env_id.startswith("ESWM-")]
    assert ids and all(name in said for name in (*ids, *available(), *COMMANDS))
