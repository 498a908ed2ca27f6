"""The embedded model: a small real policy that trains and acts on a CPU, and its catalogue of faults.

Importing this package imports no numpy: the BLAS settings of a run must be in the environment before numpy is
loaded, so runs happen in a subprocess (`rehearse` starts it, `run` is it).
"""
