"""The compiler: groups of element-wise, broadcast and reduction operators become loops, and loops become kernels.

`ir` is the loop IR, `compute` what each operator computes per element, `lower` turns a fusion group into a `Function`
of the loop IR, `schedule` reorders its loops, `codegen` writes it out as a numba kernel.
"""
