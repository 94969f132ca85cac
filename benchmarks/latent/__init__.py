"""Do the world model's activations form the room's map? `python benchmarks/latent` asks."""
