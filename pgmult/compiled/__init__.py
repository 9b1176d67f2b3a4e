"""Compiled kernels: the only folder that imports numba. Arrays in, arrays and a status code out.

Callers outside this folder have already checked and converted every array: float64 or int64
(float32 where a docstring says so), C order.
"""
