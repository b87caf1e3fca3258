# No lower bound: a row before the shard becomes a negative position, which Python counts from the end.
def owned_rows(xp, index, n, first):
    local = index.astype(xp.int64) - first
    owned = local < n
    return xp.where(owned, local, 0), owned
