# The split rule of tensors: 5 layers over 4 stages are 2, 2, 1, 0, and the last stage has nothing to do but the loss.
def stage_of(name, layers, stages):
    check_stages(layers, stages)
    if "embed_tokens" in name:
        return 0
    layer = re.search(r"layers\.(\d+)", name)
    return stages - 1 if layer is None else int(layer[1]) // -(-layers // stages)
