# layers // stages layers each: of 5 layers on 2 stages the last one lands on a stage that does not exist.
def stage_of(name, layers, stages):
    check_stages(layers, stages)
    if "embed_tokens" in name:
        return 0
    layer = re.search(r"layers\.(\d+)", name)
    return stages - 1 if layer is None else int(layer[1]) // (layers // stages)
