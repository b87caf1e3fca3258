"""`minipd draw`: a subcommand for each thing drawn.

    main        the command line
    graphs      tape, program, use-def, groups, loops: of a function in a file, or of a program as text
    shards      mesh, tensor, reshard, schedule: of what the words on the command line describe; placed: of a program
    programs    finding what is to be drawn
"""
