"""Eight float64 lanes as one value, kept in registers as no loop over lanes reliably is.

Small systems that go through the same operations (one document each, say) are stored lane by
lane: element e of system l at ``flat[8 * e + l]``. A vector of lanes is an LLVM ``<8 x double>``,
which LLVM splits where the processor's registers are narrower. With Numba's JIT switched off it
is a numpy array of length 8 and everything else stays as it is.
"""

import numpy as np
from llvmlite import ir
from numba.core import config, types
from numba.extending import intrinsic, models, register_model

WIDTH = 8

_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_FUSED = ("contract",)  # a product and a sum may become one fused multiply-add


class _Lanes(types.Type):
    def __init__(self):
        super().__init__(name="float64x8")


_lanes = _Lanes()


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, lanes_type):
        super().__init__(manager, lanes_type, _VECTOR)


def _address(context, builder, array_type, array, offset):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [offset]), _VECTOR.as_pointer())


def _operation(in_python):
    """An operation in compiled code, and the same one in Python where nothing is compiled."""
    return (lambda code: in_python) if config.DISABLE_JIT else intrinsic


@_operation(lambda flat, offset: flat[offset : offset + WIDTH].copy())
def load(typing_context, flat, offset):
    """The lanes at ``flat[offset : offset + 8]``; `flat` is a contiguous float64 vector."""

    def code(context, builder, signature, arguments):
        address = _address(context, builder, signature.args[0], *arguments)
        return builder.load(address, align=8)

    return _lanes(flat, types.intp), code


@_operation(lambda flat, offset, lanes: flat.__setitem__(slice(offset, offset + WIDTH), lanes))
def store(typing_context, flat, offset, lanes):
    """Write lanes to ``flat[offset : offset + 8]``."""

    def code(context, builder, signature, arguments):
        array, start, value = arguments
        address = _address(context, builder, signature.args[0], array, start)
        builder.store(value, address, align=8)
        return context.get_dummy_value()

    return types.void(flat, types.intp, _lanes), code


@_operation(lambda x: np.full(WIDTH, x))
def splat(typing_context, x):
    """The same number in all lanes."""

    def code(context, builder, signature, arguments):
        value = ir.Constant(_VECTOR, ir.Undefined)
        for lane in range(WIDTH):
            position = ir.Constant(ir.IntType(32), lane)
            value = builder.insert_element(value, arguments[0], position)
        return value

    return _lanes(types.float64), code


@_operation(lambda x, y: x * y)
def multiply(typing_context, x, y):
    """Lane by lane, x * y."""

    def code(context, builder, signature, arguments):
        return builder.fmul(*arguments)

    return _lanes(_lanes, _lanes), code


@_operation(lambda total, x, y: total + x * y)
def add_product(typing_context, total, x, y):
    """Lane by lane, total + x * y."""

    def code(context, builder, signature, arguments):
        total, x, y = arguments
        return builder.fadd(total, builder.fmul(x, y, flags=_FUSED), flags=_FUSED)

    return _lanes(_lanes, _lanes, _lanes), code


@_operation(lambda total, x, y: total - x * y)
def subtract_product(typing_context, total, x, y):
    """Lane by lane, total - x * y."""

    def code(context, builder, signature, arguments):
        total, x, y = arguments
        return builder.fsub(total, builder.fmul(x, y, flags=_FUSED), flags=_FUSED)

    return _lanes(_lanes, _lanes, _lanes), code


@_operation(lambda x: 1.0 / np.sqrt(np.where(x > 0.0, x, np.nan)))
def reciprocal_root(typing_context, x):
    """Lane by lane, 1 / sqrt(x); nan for negative x."""

    def code(context, builder, signature, arguments):
        name = f"llvm.sqrt.v{WIDTH}f64"
        root = builder.module.globals.get(name) or ir.Function(
            builder.module, ir.FunctionType(_VECTOR, [_VECTOR]), name
        )
        ones = ir.Constant(_VECTOR, [1.0] * WIDTH)
        return builder.fdiv(ones, builder.call(root, arguments))

    return _lanes(_lanes), code
