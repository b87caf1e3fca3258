"""Where the boxes of a graph stand, and how its arrows run: in layers, after Sugiyama, Tagawa and Toda (1981).

    rows        each box in a row below all that it depends on; what is long is made of short pieces
    order       the order within rows, by which few arrows cross
    across      x: boxes near what they are connected to, in that order
    flat        one level: boxes and wires in, coordinates and routes out
    nested      clusters: each is laid out by itself, and is a box of the level around it

Every picture comes out the same on every machine, with or without Graphviz.
"""
