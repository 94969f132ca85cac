"""How well does each model predict, and from what? `python benchmarks/predict` asks."""
