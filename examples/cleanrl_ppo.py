"""PPO in one file, in the manner of CleanRL; with `--planned-action` it also sees what the ESWM agent would do.

With that it takes about 3 minutes on one core, without it 20 seconds, and with `--quick` no more than 10.
"""

import argparse

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

import eswm_gym  # noqa: F401  registers the environments
from eswm_gym.agents.wrappers import PlannedAction

options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
options.add_argument("--env-id", default="ESWM-RandomWall19-v0", help="environment")
options.add_argument("--steps", type=int, default=20_000, help="of training")
options.add_argument("--n-envs", type=int, default=8, help="environments at a time")
options.add_argument("--quick", action="store_true", help="512 steps, to see that it runs")
options.add_argument("--planned-action", action="store_true", help="show the policy what ESWM would do")
args = options.parse_args()
if args.quick:
    args.steps = 512
ROLLOUT, EPOCHS, BATCHES, GAMMA, LAMBDA, CLIP, ENTROPY = 64, 4, 4, 0.99, 0.95, 0.2, 0.01


def make_env():
    env = gym.make(args.env_id)
    env = PlannedAction(env, "random-wall") if args.planned_action else env
    return gym.wrappers.FlattenObservation(gym.wrappers.RecordEpisodeStatistics(env))


torch.manual_seed(0)
envs = gym.vector.SyncVectorEnv([make_env] * args.n_envs, autoreset_mode=gym.vector.AutoresetMode.SAME_STEP)
n_inputs, n_actions = envs.single_observation_space.shape[0], envs.single_action_space.n
actor, critic = (nn.Sequential(nn.Linear(n_inputs, 64), nn.Tanh(), nn.Linear(64, n)) for n in (n_actions, 1))
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=2.5e-3, eps=1e-5)

shown, infos = envs.reset(seed=0)
obs, returns = torch.as_tensor(shown, dtype=torch.float32), []
for update in range(max(1, args.steps // (ROLLOUT * args.n_envs))):
    rows = []
    for _ in range(ROLLOUT):
        with torch.no_grad():
            policy, value = Categorical(logits=actor(obs)), critic(obs).squeeze(-1)
            action = policy.sample()
        shown, reward, terminations, truncations, infos = envs.step(action.numpy())
        if "final_info" in infos:
            returns += infos["final_info"]["episode"]["r"][terminations | truncations].tolist()
        done = torch.as_tensor(terminations | truncations, dtype=torch.float32)
        reward = torch.as_tensor(reward, dtype=torch.float32)
        rows.append((obs, action, policy.log_prob(action), value, reward, done))
        obs = torch.as_tensor(shown, dtype=torch.float32)
    seen, actions, log_probs, values, rewards, dones = (torch.stack(part) for part in zip(*rows, strict=True))

    with torch.no_grad():  # generalised advantage estimation
        ahead, advantages, advantage = critic(obs).squeeze(-1), torch.zeros_like(rewards), 0.0
        for t in reversed(range(ROLLOUT)):
            delta = rewards[t] + GAMMA * ahead * (1 - dones[t]) - values[t]
            advantages[t] = advantage = delta + GAMMA * LAMBDA * (1 - dones[t]) * advantage
            ahead = values[t]
    seen, actions, log_probs, advantages, targets = (
        part.flatten(0, 1) for part in (seen, actions, log_probs, advantages, advantages + values)
    )
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(actions)).chunk(BATCHES):
            policy = Categorical(logits=actor(seen[batch]))
            ratio = (policy.log_prob(actions[batch]) - log_probs[batch]).exp()
            gain = (advantages[batch] - advantages[batch].mean()) / (advantages[batch].std() + 1e-8)
            surrogate = torch.min(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
            value_loss = (critic(seen[batch]).squeeze(-1) - targets[batch]).square().mean()
            loss = 0.5 * value_loss - surrogate - ENTROPY * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_([*actor.parameters(), *critic.parameters()], 0.5)
            optimizer.step()
    print(f"step {(update + 1) * ROLLOUT * args.n_envs}: return {np.mean(returns[-100:]):.2f}", flush=True)
print(f"last 100 of {len(returns)} episodes: return {np.mean(returns[-100:]):.2f}")
