"""Runs an episode and writes it as a page to scrub through: `python -m eswm_gym.replay --out episode.html`."""

from eswm_gym.agents.replay import SEED, main, record

__all__ = ["SEED", "main", "record"]

if __name__ == "__main__":
    main()
