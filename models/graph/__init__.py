"""The complete graph of the shipped store, compared with the graph that the spec's tables give.

`expected` derives one side from the tables of spec/ alone. `worlds` and `explore` walk the other:
real SQL, real triggers, the shipped writer. `compare` says where they differ, in words.
"""
