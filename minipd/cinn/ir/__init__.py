"""The loop IR: `ast` (its grammar), `printer`, `interpreter` (its meaning), `simplify`."""
