"""ESWMAgent over Gymnasium's vector environments: in this process, in processes of their own, and all in one object.

It takes about 20 seconds on one core.
"""

import argparse

import gymnasium as gym
import numpy as np

import eswm_gym  # noqa: F401  registers the environments
from eswm_gym.agents import ESWMAgent

options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
options.add_argument("--env-id", default="ESWM-RandomWall19Explore-v0", help="environment")
options.add_argument("--n-envs", type=int, default=4, help="environments at a time")
options.add_argument("--steps", type=int, default=30, help="of each environment")
args = options.parse_args()

if __name__ == "__main__":  # processes of their own may import this file again
    agent = ESWMAgent.from_pretrained("random-wall", seed=0)
    # SAME_STEP: the observation after the end of an episode is the first of the next one, as `predict` expects.
    mode = gym.vector.AutoresetMode.SAME_STEP
    for kind in ("sync", "async", "vector_entry_point"):
        how = {"autoreset_mode": mode} if kind == "vector_entry_point" else {"vector_kwargs": {"autoreset_mode": mode}}
        # "eswm_gym:" makes a new process import the package, which registers the environments there.
        envs = gym.make_vec(f"eswm_gym:{args.env_id}", args.n_envs, kind, **how)
        envs = gym.wrappers.vector.RecordEpisodeStatistics(envs)
        obs, infos = envs.reset(seed=0)
        state, starts = None, np.ones(args.n_envs, bool)
        for _ in range(args.steps):
            # Which moves stay on the lattice is in the infos; `predict` takes it as a part of the observation.
            actions, state = agent.predict({**obs, "action_mask": infos["action_mask"]}, state, starts)
            obs, rewards, terminations, truncations, infos = envs.step(actions)
            starts = terminations | truncations
        print(f"{kind}: {len(envs.return_queue)} episodes, mean return {np.mean(envs.return_queue):.4f}", flush=True)
        envs.close()
