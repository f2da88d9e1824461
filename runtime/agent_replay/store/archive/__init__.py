"""Archives: finished runs in compressed files, each complete in itself, beside the database.

`record` is the row that stays in the database, `lines` what is in a file and how it is spelled,
`place` which file it is, `making` and `leaving` how runs go there, `reading` how one is read again,
`checking` how a file is verified. Nothing outside of `store` and `archiving` imports from here, and
nothing at the start of a program: most never archive.
"""
