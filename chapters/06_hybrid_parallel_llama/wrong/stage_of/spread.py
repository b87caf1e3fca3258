# Spreads the longer stages: 10 layers on 4 stages are 3, 2, 3, 2, where 3, 3, 2, 2 would leave the last ones the loss.
def stage_of(name, layers, stages):
    check_stages(layers, stages)
    if "embed_tokens" in name:
        return 0
    layer = re.search(r"layers\.(\d+)", name)
    return stages - 1 if layer is None else int(layer[1]) * stages // layers
