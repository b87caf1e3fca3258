# Lets the errors of the parts through, which say neither which file it was nor what to do.
def entries(file, size, where):
    position = 0
    while position < size:
        file.seek(position)
        n = binary_tensor.description_length(file.read(binary_tensor.BEFORE))
        what = binary_tensor.described(file.read(n))
        start = position + binary_tensor.BEFORE + n
        if what.nbytes > size - start:
            raise InputError("values", f"the end of {where}", "copy the file again")
        yield Entry(what, start)
        position = start + what.nbytes
