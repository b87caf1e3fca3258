"""Big operators as compositions of smaller ones: one rule for eager and static, entered as the column `decompose`."""

from minipd.decomposition import rules

__all__ = ["rules"]
