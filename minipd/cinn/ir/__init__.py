"""The loop IR: `ast` (its grammar), `operators`, `printer`, `interpreter` (its meaning), `simplify`."""
