"""How pictures look: colours for light and dark surroundings, and how wide text is.

Every picture brings this sheet, scoped to its own class, and names nothing by id: several in one page cannot disturb
each other.  A colour is a class with four values: fill and edge on light, fill and edge on dark ground.  Text keeps a
contrast of at least 4.5 to 1 on each of them.
"""

from __future__ import annotations

__all__ = ["COLOURS", "PIECES", "SANS", "sheet", "text_width"]

#: class -> fill and edge on light ground, fill and edge on dark ground
COLOURS = {
    "op": ("#ffffff", "#94a3b8", "#1f2733", "#64748b"),
    "input": ("#dbeafe", "#60a5fa", "#1b3a63", "#60a5fa"),
    "output": ("#dcfce7", "#4ade80", "#173f2a", "#4ade80"),
    "control": ("#ede9fe", "#a78bfa", "#332b58", "#a78bfa"),
    "comm": ("#ffe4e6", "#fb7185", "#4a2029", "#fb7185"),
    "kernel": ("#fde68a", "#d97706", "#5a430c", "#d9a441"),
    "fusion": ("#fef7dc", "#e0a63a", "#332a14", "#b98a34"),
    "trivial": ("#e6f0fd", "#6ea3e8", "#16283f", "#4c7fc0"),
    "reduce": ("#e4f6e9", "#57b573", "#142b1d", "#3f8f58"),
    "tree": ("#efe9fb", "#a287dc", "#241d3d", "#7f68b8"),
    "treetop": ("#fef7dc", "#e0a63a", "#332a14", "#b98a34"),
    "anchor": ("#fde8ea", "#ea7d8b", "#391a20", "#b85b68"),
    "horizontal": ("#e2f5f3", "#4fb3a6", "#11292a", "#3c8a80"),
    "region": ("#f5f7fa", "#b6c2d1", "#1a212b", "#4b5a6d"),
    "layer": ("#ecf6f4", "#7fb8ab", "#16292a", "#4f8f86"),
    "focus": ("#fde68a", "#b45309", "#6b4f0b", "#fbbf24"),
    "use": ("#f1f5f9", "#cbd5e1", "#273141", "#475569"),
    "forward": ("#a9cdfb", "#3b82f6", "#1e4f91", "#60a5fa"),
    "backward": ("#a7e8bd", "#16a34a", "#1c6638", "#4ade80"),
    "optimizer": ("#fcd77a", "#d97706", "#7a560c", "#fbbf24"),
    "idle": ("#eceff3", "#d3dae3", "#1c232d", "#323d4c"),
    "card": ("#ffffff", "#dbe1e8", "#151b23", "#2d3846"),
    "p0": ("#9ec9f8", "#2f6fb5", "#1f4f86", "#7db4ee"),
    "p1": ("#fbc490", "#b8661b", "#84450f", "#f0a868"),
    "p2": ("#9fe0ae", "#2c8a48", "#1d6338", "#74cf8d"),
    "p3": ("#f4b3d3", "#ae3f7d", "#7d2b59", "#e88fbd"),
    "p4": ("#cdbdf7", "#6c4fc0", "#4d3a8f", "#b09bf0"),
    "p5": ("#f0e07a", "#957d0d", "#66560a", "#dcc94f"),
    "p6": ("#8fe0d6", "#1b8379", "#125f58", "#5fd0c3"),
    "p7": ("#d5d0ca", "#6d665e", "#4f4a44", "#b5aea6"),
}

#: the colours of the pieces of a tensor, in turn
PIECES = tuple(name for name in COLOURS if name[0] == "p" and name[1:].isdecimal())

#: class -> colour of lines and words on light, on dark
INKS = {"ink": ("#1f2937", "#e5e9f0"), "dim": ("#566273", "#a3afbf"), "wire": ("#7b8797", "#8492a6"),
        "way": ("#15803d", "#4ade80"), "first": ("#2563eb", "#7db4ee"), "second": ("#c2410c", "#f0a868")}

GROUND = ("#ffffff", "#11161d")
SANS = "Helvetica, Arial, 'Liberation Sans', sans-serif"
MONO = "Menlo, 'DejaVu Sans Mono', 'Liberation Mono', Consolas, monospace"


def sheet() -> str:
    """The style sheet."""
    fixed = (f".minipd{{font-family:{SANS};font-size:12px}}.minipd text{{white-space:pre}}"
             f".minipd .mono{{font-family:{MONO}}}.minipd .bold{{font-weight:600}}.minipd .mid{{text-anchor:middle}}"
             ".minipd .end{text-anchor:end}.minipd .line{fill:none;stroke-width:1.2}.minipd .thick{stroke-width:2}"
             ".minipd .dash{stroke-dasharray:4 3}.minipd .bare{fill:none}.minipd .ghost{opacity:.3}"
             ".minipd .halo{paint-order:stroke;stroke-width:4px;stroke-linejoin:round}")
    return fixed + _colours(0) + "@media(prefers-color-scheme:dark){" + _colours(1) + "}"


def _colours(dark: int) -> str:
    ground, ink = GROUND[dark], INKS["ink"][dark]
    rules = [f".minipd .ground{{fill:{ground};stroke:none}}.minipd text{{fill:{ink}}}.minipd .halo{{stroke:{ground}}}"]
    for name, four in COLOURS.items():
        fill, edge = four[2 * dark:2 * dark + 2]
        rules.append(f".minipd .{name}{{fill:{fill};stroke:{edge}}}.minipd .on-{name}{{stroke:{fill}}}")
    for name, two in INKS.items():
        rules.append(f".minipd text.{name}{{fill:{two[dark]}}}.minipd .line.{name}{{stroke:{two[dark]}}}"
                     f".minipd .solid.{name}{{fill:{two[dark]};stroke:none}}")
    return "".join(rules)


#: widths of Helvetica's characters, in thousandths of the font's size, by the characters that have them
WIDTHS = {
    222: "ijl", 278: " .,:;!/\\|fItr[]()'", 334: "{}", 389: "*-", 355: '"', 500: "cksvxyzJ", 584: "+<=>~", 611: "FTZ",
    667: "ABEKPSVXY&", 722: "CDHNRUw", 778: "GOQ", 833: "mM", 889: "%", 944: "W", 1015: "@",
}
WIDTH_OF = {c: w for w, characters in WIDTHS.items() for c in characters}


def text_width(words: str, size: float = 12, mono: bool = False, bold: bool = False) -> float:
    """How wide a line of text is, in pixels: what Helvetica and its like need, with a little to spare.

    >>> text_width("1234567890", 10, mono=True)
    60.5
    >>> text_width("iii") < text_width("WWW")
    True
    """
    if mono:
        return round(len(words) * size * 0.605, 1)
    per_mille = sum(WIDTH_OF.get(c, 556 if c.isascii() else 700) for c in words)
    return round(per_mille * size * (1.08 if bold else 1.02) / 1000, 1)
