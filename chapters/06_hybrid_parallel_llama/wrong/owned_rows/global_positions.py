# Positions in the whole table, not in this shard of it.
def owned_rows(xp, index, n, first):
    owned = (index >= first) & (index < first + n)
    return xp.where(owned, index, 0), owned
