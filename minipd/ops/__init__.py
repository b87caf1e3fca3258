"""The operator library (Paddle's PHI): one file per family, one row per operator, public functions beneath the rows."""
