"""The machinery of the course: workspaces, the grader, notebooks.  `python -m tools.course --help` lists its commands.

    chapter.py    reads chapters/NN_name/chapter.toml
    source.py     finds a function in the text of a module
    workspace.py  writes the files that a student fills in
    overlay.py    puts a student's function in the place of the library's
    child.py      runs one exercise's checks under such an overlay, in a process of its own
    process.py    starts such a process, bounds it, and ends it
    grade.py      what came of it;  report.py  as text
    checking.py   what the checks are written with
    notebook.py   builds and runs the notebooks
"""
