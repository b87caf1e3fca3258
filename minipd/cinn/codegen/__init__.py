"""From loops to source text: `numba_source` writes a loop-IR function out, `scalar` and `math` are what it calls."""
