"""What rules and passes do to programs.

    matches     where a rule matches, or how near it comes
    changes     a program before and after, side by side
"""
