# Accepts more stages than layers.
def stage_of(name, layers, stages):
    if "embed_tokens" in name:
        return 0
    layer = re.search(r"layers\.(\d+)", name)
    if layer is None:
        return stages - 1
    i = int(layer[1])
    least, longer = divmod(layers, stages)
    return i // (least + 1) if i < longer * (least + 1) else (i - longer) // least
