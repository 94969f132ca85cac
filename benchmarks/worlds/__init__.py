"""Does one model answer in rooms on any lattice? `python benchmarks/worlds` asks."""
