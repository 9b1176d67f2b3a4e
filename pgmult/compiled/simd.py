"""Eight lanes as one value, kept in registers as no loop over lanes reliably is.

Small systems that go through the same operations (one document each, say) are stored lane by
lane: element e of system l at ``flat[8 * e + l]``. A vector of lanes is an LLVM ``<8 x double>``
or ``<8 x float>``, after the array that it is loaded from; LLVM splits it where the processor's
registers are narrower. With Numba's JIT switched off it is a numpy array of length 8 and
everything else stays as it is.
"""

from functools import wraps

import numpy as np
from llvmlite import ir
from numba.core import config, types
from numba.extending import intrinsic, models, register_model

from .jit import jit
from .vectors import EXP_REST, EXP_TOP

WIDTH = 8

_FUSED = ("contract",)  # a product and a sum may become one fused multiply-add
_BITS = ir.VectorType(ir.IntType(64), WIDTH)


class _Lanes(types.Type):
    def __init__(self, element):
        self.element = element
        self.vector = ir.VectorType(
            ir.DoubleType() if element == types.float64 else ir.FloatType(), WIDTH
        )
        super().__init__(name=f"{element}x{WIDTH}")


_LANES = {element: _Lanes(element) for element in (types.float64, types.float32)}


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, lanes_type):
        super().__init__(manager, lanes_type, lanes_type.vector)


def _address(context, builder, array_type, array, offset):
    data = context.make_array(array_type)(context, builder, array).data
    vector = _LANES[array_type.dtype].vector
    return builder.bitcast(builder.gep(data, [offset]), vector.as_pointer())


def _operation(in_python):
    """An operation in compiled code, and the same one in Python where nothing is compiled."""
    return (lambda code: in_python) if config.DISABLE_JIT else intrinsic


def _lane_by_lane(in_python):
    """An `_operation` on lanes of one type that gives such lanes: ``build(builder, *lanes)``."""

    def operation(build):
        @wraps(build)
        def typed(typing_context, *lanes):
            def code(context, builder, signature, arguments):
                return build(builder, *arguments)

            return lanes[0](*lanes), code

        return _operation(in_python)(typed)

    return operation


def _constant(lanes, value):
    return ir.Constant(lanes.type, [value] * WIDTH)


def _call(builder, name, x):
    """One of LLVM's functions of a floating-point vector."""
    name = f"llvm.{name}.v{WIDTH}{x.type.element.intrinsic_name}"
    kind = ir.FunctionType(x.type, [x.type])
    return builder.call(builder.module.declare_intrinsic(name, (), kind), [x])


@_operation(lambda flat, offset: flat[offset : offset + WIDTH].copy())
def load(typing_context, flat, offset):
    """The lanes at ``flat[offset : offset + 8]``; `flat` is a contiguous vector."""

    def code(context, builder, signature, arguments):
        address = _address(context, builder, signature.args[0], *arguments)
        return builder.load(address, align=flat.dtype.bitwidth // 8)

    return _LANES[flat.dtype](flat, types.intp), code


@_operation(lambda flat, offset: None)
def fetch(typing_context, flat, offset):
    """Have the cache line of ``flat[offset]`` brought near; `offset` may be anything."""

    def code(context, builder, signature, arguments):
        address = _address(context, builder, signature.args[0], *arguments)
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        how = (ir.Constant(number, value) for value in (0, 3, 1))  # to read, all caches, data
        builder.call(function, [builder.bitcast(address, byte), *how])
        return context.get_dummy_value()

    return types.void(flat, types.intp), code


@_operation(lambda flat, offset, lanes: flat.__setitem__(slice(offset, offset + WIDTH), lanes))
def store(typing_context, flat, offset, lanes):
    """Write lanes to ``flat[offset : offset + 8]``."""

    def code(context, builder, signature, arguments):
        array, start, value = arguments
        address = _address(context, builder, signature.args[0], array, start)
        builder.store(value, address, align=flat.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(flat, types.intp, lanes), code


@_operation(lambda x: np.full(WIDTH, x))
def splat(typing_context, x):
    """The same number in all lanes."""

    def code(context, builder, signature, arguments):
        value = ir.Constant(_LANES[x].vector, ir.Undefined)
        for lane in range(WIDTH):
            position = ir.Constant(ir.IntType(32), lane)
            value = builder.insert_element(value, arguments[0], position)
        return value

    return _LANES[x](x), code


@_lane_by_lane(lambda x, y: x + y)
def add(builder, x, y):
    """Lane by lane, x + y."""
    return builder.fadd(x, y)


@_lane_by_lane(lambda x, y: x - y)
def subtract(builder, x, y):
    """Lane by lane, x - y."""
    return builder.fsub(x, y)


@_lane_by_lane(lambda x, y: x * y)
def multiply(builder, x, y):
    """Lane by lane, x * y."""
    return builder.fmul(x, y)


@_lane_by_lane(lambda x, y: x / y)
def divide(builder, x, y):
    """Lane by lane, x / y."""
    return builder.fdiv(x, y)


@_lane_by_lane(lambda total, x, y: total + x * y)
def add_product(builder, total, x, y):
    """Lane by lane, total + x * y."""
    return builder.fadd(total, builder.fmul(x, y, flags=_FUSED), flags=_FUSED)


@_lane_by_lane(lambda total, x, y: total - x * y)
def subtract_product(builder, total, x, y):
    """Lane by lane, total - x * y."""
    return builder.fsub(total, builder.fmul(x, y, flags=_FUSED), flags=_FUSED)


@_operation(lambda x: x.astype(np.float32))
def narrow(typing_context, x):
    """Lane by lane, x in single precision."""
    lanes = _LANES[types.float32]
    return lanes(x), lambda context, builder, signature, arguments: builder.fptrunc(
        arguments[0], lanes.vector
    )


@_operation(lambda x: x.astype(np.float64))
def widen(typing_context, x):
    """Lane by lane, x in double precision."""
    lanes = _LANES[types.float64]
    return lanes(x), lambda context, builder, signature, arguments: builder.fpext(
        arguments[0], lanes.vector
    )


@_lane_by_lane(lambda x: 1.0 / np.sqrt(np.where(x > 0.0, x, np.nan)))
def reciprocal_root(builder, x):
    """Lane by lane, 1 / sqrt(x); nan for negative x."""
    return builder.fdiv(_constant(x, 1.0), _call(builder, "sqrt", x))


@_lane_by_lane(lambda x: -np.abs(x))
def minus_absolute(builder, x):
    """Lane by lane, -abs(x)."""
    return builder.fneg(_call(builder, "fabs", x))


@_lane_by_lane(lambda x, y, above, otherwise: np.where(x > y, above, otherwise))
def where_above(builder, x, y, above, otherwise):
    """Lane by lane, `above` where x > y and `otherwise` elsewhere, nan included."""
    return builder.select(builder.fcmp_ordered(">", x, y), above, otherwise)


@_lane_by_lane(lambda x: np.cumsum(x, dtype=x.dtype))
def running_sums(builder, x):
    """Sums of the first 1, 2, ..., 8 lanes."""
    total, zeros = x, _constant(x, 0.0)
    for shift in (1, 2, 4):  # lanes from 8 on are those of `total`
        lanes = [max(0, lane - shift + WIDTH) for lane in range(WIDTH)]
        places = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), lanes)
        total = builder.fadd(total, builder.shuffle_vector(zeros, total, places))
    return total


@_operation(lambda x: x[-1])
def last(typing_context, x):
    """The last lane."""

    def code(context, builder, signature, arguments):
        return builder.extract_element(arguments[0], ir.Constant(ir.IntType(32), WIDTH - 1))

    return x.element(x), code


@_operation(lambda x, y: int(np.count_nonzero(x <= y)))
def count_up_to(typing_context, x, y):
    """How many lanes of x are no more than those of y."""

    def code(context, builder, signature, arguments):
        matches = builder.fcmp_ordered("<=", *arguments)
        bits = builder.zext(builder.bitcast(matches, ir.IntType(WIDTH)), ir.IntType(64))
        return builder.ctpop(bits)

    return types.int64(x, x), code


_SHIFT = 1.5 * 2.0**52  # a sum with it ends in an integer's bits
# of twice the series of artanh, in squares
_ARTANH_TOP, _ARTANH_REST = 2.0 / 29.0, tuple(2.0 / k for k in range(27, 0, -2))


@_lane_by_lane(lambda x, shifted: np.ldexp(x, (shifted - _SHIFT).astype(np.int64)))
def times_power(builder, x, shifted):
    """Lane by lane, x 2**n of an integer n given as n + _SHIFT; all must be normal numbers."""
    bits, n = (builder.bitcast(lanes, _BITS) for lanes in (x, shifted))
    exponent = builder.shl(n, ir.Constant(_BITS, [52] * WIDTH))
    return builder.bitcast(builder.add(bits, exponent), x.type)


@jit
def exp_negative(x):
    """Lane by lane, exp(x) for x <= 0, to 2 units in the last place; exp(-700) below -700."""
    x = where_above(x, splat(-700.0), x, splat(-700.0))
    shifted = add_product(splat(_SHIFT), x, splat(1.4426950408889634))
    n = subtract(shifted, splat(_SHIFT))
    r = subtract_product(x, n, splat(6.93147180369123816490e-01))
    r = subtract_product(r, n, splat(1.90821492927058770002e-10))
    p = splat(EXP_TOP)
    for coefficient in EXP_REST:
        p = add_product(splat(coefficient), p, r)
    return times_power(p, shifted)


@jit
def softplus_change(x, y):
    """Lane by lane, log(1 + exp(y)) - log(1 + exp(x)).

    One logarithm serves both, of a ratio between 1/2 and 2: twice the artanh of a number below 1/3.
    """
    zero = splat(0.0)
    a, b = exp_negative(minus_absolute(y)), exp_negative(minus_absolute(x))
    s = divide(subtract(a, b), add(splat(2.0), add(a, b)))
    w = multiply(s, s)
    p = splat(_ARTANH_TOP)
    for coefficient in _ARTANH_REST:
        p = add_product(splat(coefficient), p, w)
    linear = subtract(where_above(y, zero, y, zero), where_above(x, zero, x, zero))
    return add_product(linear, p, s)
