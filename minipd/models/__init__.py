"""The main job: a Llama, and what it takes to train it (floor 6)."""
