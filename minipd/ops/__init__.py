"""The operator library (Paddle's PHI): one file per family, one row per operator, public functions beneath the rows."""

#: The modules whose public names are names of minipd, and whose functions of a tensor are methods of Tensor, in the
#: order in which they are imported.
FAMILIES = """
    creation cast complex polar math scaling elementary logic bitwise division rounding pointwise two_operands
    float_parts special reduce aggregate scan closeness statistics linalg matrices broadcast reshape slicing joining
    triangle activation ranges embedding gather scatter along_axis sorting quantiles differences search
    reorder strided diagonal
    repeating stacking masking parts histogram loss random distributions refilling inplace
    attributes conversion to handles
""".split()
