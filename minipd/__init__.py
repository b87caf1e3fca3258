"""minipd: a deep-learning framework in the shape of Paddle, small enough to read."""
