"""The operator library (Paddle's PHI): one file per family, one row per operator, public functions beneath the rows.

Where to look (files without rows compose those of others):

    what rows share     families shapes promotion making | holes matrix (`minipd ops`) stubs
    making tensors      creation ranges conversion to cast | random distributions refilling
    element-wise        math scaling elementary special rounding division bitwise logic two_operands pointwise
                        float_parts closeness | complex polar
    over axes           reduce aggregate scan | statistics quantiles differences histogram
    another form        reshape broadcast slicing strided diagonal triangle reorder | joining stacking repeating parts
    by number           indices indexing by_number gather scatter along_axis embedding accumulate masking
    order and search    sorting search
    matrices            linalg matrices/ | fft framing
    networks            activation norm loss ctc rnnt recurrent rope | fused/ (what passes fuse others into)
    images              geometry windows conv bins pooling unpooling fold padding interpolate
    optimizers          update/
    on Tensor           methods inplace attributes handles
"""

#: The modules whose public names are names of minipd, and whose functions of a tensor are methods of Tensor, in the
#: order in which they are imported.
FAMILIES = """
    creation cast complex polar math scaling elementary logic bitwise division rounding pointwise two_operands
    float_parts special reduce aggregate scan closeness statistics linalg matrices broadcast reshape slicing joining
    triangle activation ranges embedding gather scatter along_axis sorting quantiles differences search
    reorder strided diagonal repeating stacking masking parts histogram loss random distributions refilling inplace
    attributes conversion to handles
""".split()
