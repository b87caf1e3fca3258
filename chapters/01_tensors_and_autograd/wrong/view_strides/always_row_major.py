# Reads the memory row by row, wherever the elements stand.
def view_strides(shape, strides, target):
    return row_major(target)
