"""Kernels at run time: `compiler` builds them, `store` keeps them, `kernel` calls them, `build` shares the work among
ranks."""
