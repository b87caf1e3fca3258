# Everything with "norm" in its name goes to the last stage, also the norms inside of layers.
def stage_of(name, layers, stages):
    check_stages(layers, stages)
    if "embed_tokens" in name:
        return 0
    if "norm" in name or "lm_head" in name:
        return stages - 1
    i = int(re.search(r"layers\.(\d+)", name)[1])
    least, longer = divmod(layers, stages)
    return i // (least + 1) if i < longer * (least + 1) else (i - longer) // least
