"""The loop IR: `ast` (its grammar; `expr` and `stmt`, its nodes), `operators`, `printer`, `interpreter` (its meaning;
`threads` and `races`, that of what runs at once), `verify` (block form), `simplify`, `linear` and `ranges` (index
arithmetic)."""
