"""Kernels at run time: `compiler` builds them, `store` keeps them, `kernel` calls them, `prepare` shares the work."""
