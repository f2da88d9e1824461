"""What others cost for the same work, each in an environment of its own.

`child.py` runs in that environment, with one of the modules `with_*.py`; all else runs in ours.
"""
