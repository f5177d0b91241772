"""What the Python op of python_op.ir does: `irtool run examples/python_op.ir --load examples/python_op.py --input x=3xf32=1,2,3`."""
import irtool


def scale(factor, x):
    return x * x.dtype.type(factor)


irtool.register_python_op("Scale", scale)
