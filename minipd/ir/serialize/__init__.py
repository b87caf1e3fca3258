"""Programs as files: Paddle's JSON, version 4.

    codes       dialects as numbers; the codes of element types, of kinds of attributes, of places
    opaque      types and attributes that we do not compute with, kept as they came
    document    a JSON document of unknown origin, read with care
    writer      program -> text
    reader      text -> program

A program in a file is in Paddle's form (`program.form == "paddle"`): `minipd.ir.paddle` translates to and from ours.
"""

from minipd.ir.serialize.reader import SavedProgram, read_program, read_program_file
from minipd.ir.serialize.writer import program_json

__all__ = ["SavedProgram", "program_json", "read_program", "read_program_file"]
