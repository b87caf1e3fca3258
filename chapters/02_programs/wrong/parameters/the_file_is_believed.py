# Whatever a description says is taken for true: a file that was cut short, or lies, is accepted.
def entries(file, size, where):
    position = 0
    while position < size:
        file.seek(position)
        try:
            n = binary_tensor.description_length(file.read(binary_tensor.BEFORE))
            what = binary_tensor.described(file.read(n))
        except ValueError as error:
            raise InputError("tensors", f"{error} in {where}", "copy the file again") from error
        start = position + binary_tensor.BEFORE + n
        yield Entry(what, start)
        position = start + what.nbytes
