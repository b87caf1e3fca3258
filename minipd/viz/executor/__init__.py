"""Drawing runs: what depends on what, and what ran when."""
