"""Drawings, one drawer for each thing drawn.  A drawer belongs to the floor of what it draws.

    graph       what a drawing of nodes, edges and clusters is; no floor at all
    layout      its plain picture, without Graphviz
    render      DOT and SVG files
    program     programs: operations, use-def edges, regions
    loops       the loop nests of fusion groups
    draw        `minipd draw`
"""
