# The longer stages at the end, where the output layer and the loss are as well.
def stage_of(name, layers, stages):
    check_stages(layers, stages)
    if "embed_tokens" in name:
        return 0
    layer = re.search(r"layers\.(\d+)", name)
    if layer is None:
        return stages - 1
    least, longer = divmod(layers, stages)
    i = layers - 1 - int(layer[1])
    return stages - 1 - (i // (least + 1) if i < longer * (least + 1) else (i - longer) // least)
