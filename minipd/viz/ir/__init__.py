"""Chapter 2: programs, and the use-def chains in them."""
