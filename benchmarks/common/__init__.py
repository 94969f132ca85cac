"""What the benchmarks share: rows, intervals, tests, options, figures, the page and the models."""
