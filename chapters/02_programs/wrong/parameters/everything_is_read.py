# Reads the whole file to find out where things are in it.
def entries(file, size, where):
    data, position = file.read(), 0
    while position < size:
        try:
            n = binary_tensor.description_length(data[position:position + binary_tensor.BEFORE])
            start = position + binary_tensor.BEFORE + n
            what = binary_tensor.described(data[position + binary_tensor.BEFORE:start])
        except ValueError as error:
            raise InputError("tensors", f"{error} in {where}", "copy the file again") from error
        if what.nbytes > size - start:
            raise InputError("values", f"the end of {where}", "copy the file again")
        yield Entry(what, start)
        position = start + what.nbytes
