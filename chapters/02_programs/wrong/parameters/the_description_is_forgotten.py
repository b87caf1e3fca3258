# The values begin behind the description, not where it does.
def entries(file, size, where):
    position = 0
    while position < size:
        file.seek(position)
        try:
            n = binary_tensor.description_length(file.read(binary_tensor.BEFORE))
            what = binary_tensor.described(file.read(n))
        except ValueError as error:
            raise InputError("tensors", f"{error} in {where}", "copy the file again") from error
        start = position + binary_tensor.BEFORE
        if what.nbytes + n > size - start:
            raise InputError("values", f"the end of {where}", "copy the file again")
        yield Entry(what, start)
        position = start + n + what.nbytes
