# Compares the size of the values with all that is left, description included: a few bytes short pass.
def entries(file, size, where):
    position = 0
    while position < size:
        file.seek(position)
        try:
            n = binary_tensor.description_length(file.read(binary_tensor.BEFORE))
            what = binary_tensor.described(file.read(n))
        except ValueError as error:
            raise InputError("tensors", f"{error} in {where}", "copy the file again") from error
        if what.nbytes > size - position:
            raise InputError("values", f"the end of {where}", "copy the file again")
        start = position + binary_tensor.BEFORE + n
        yield Entry(what, start)
        position = start + what.nbytes
