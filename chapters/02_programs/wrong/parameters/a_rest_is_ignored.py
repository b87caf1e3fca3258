# What is too short to be a tensor is taken for the end of the file.
def entries(file, size, where):
    position = 0
    while size - position >= binary_tensor.BEFORE:
        file.seek(position)
        try:
            n = binary_tensor.description_length(file.read(binary_tensor.BEFORE))
            what = binary_tensor.described(file.read(n))
        except ValueError as error:
            raise InputError("tensors", f"{error} in {where}", "copy the file again") from error
        start = position + binary_tensor.BEFORE + n
        if what.nbytes > size - start:
            raise InputError("values", f"the end of {where}", "copy the file again")
        yield Entry(what, start)
        position = start + what.nbytes
