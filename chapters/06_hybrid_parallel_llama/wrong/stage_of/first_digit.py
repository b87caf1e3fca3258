# Reads one digit of the number of the layer: layer 10 is taken for layer 1.
def stage_of(name, layers, stages):
    check_stages(layers, stages)
    if "embed_tokens" in name:
        return 0
    layer = re.search(r"layers\.(\d)", name)
    if layer is None:
        return stages - 1
    i = int(layer[1])
    least, longer = divmod(layers, stages)
    return i // (least + 1) if i < longer * (least + 1) else (i - longer) // least
