"""Chapter 4: fusion groups, and the loop nests that come of them."""
