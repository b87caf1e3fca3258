"""From loops to source text: `numba_source` writes a function of the loop IR out, `expressions` what it computes.
`phases` says what may run at once, `streaming` which results go around the cache; the text calls `scalar` and `math`,
which are compiled as `inline` says."""
