"""Chapter 1: the tape."""
