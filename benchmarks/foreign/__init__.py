"""How does the agent do in environments that other people wrote? `python benchmarks/foreign` asks."""
