"""What the repository is worked on with; no part of the package minipd."""
