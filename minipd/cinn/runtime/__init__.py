"""Kernels at run time.

    compiler, machine   from text to machine code; `store` keeps it on disk, `build` shares the work among ranks
    kernel              a call: which code, on which arrays; `buckets`: which of two kernels
    plan                what calls on arrays of the same shapes have in common; `scratch`: arrays between phases
    threads             who runs the tasks
    aliases             a kernel whose input and output are one array
"""
