"""Arithmetic on 32-bit words that stays 32 bits wide: numba widens uint32 to 64 bits, which halves what a vector holds.

Each function is one machine instruction, given to LLVM as such. Importing this module imports numba.
"""

import llvmlite.ir as ir
from numba import types
from numba.extending import intrinsic

_WORD, _SINGLE, _HALF = ir.IntType(32), ir.FloatType(), ir.HalfType()
word, short = types.uint32, types.uint16


def _two(build, kind=word):
    """An operation on two values of one kind."""
    @intrinsic
    def operation(typing, a, b):
        return kind(kind, kind), lambda context, builder, signature, args: build(builder, args[0], args[1])

    return operation


def _one(build, result, kind):
    """A conversion of one value."""
    @intrinsic
    def operation(typing, a):
        return result(kind), lambda context, builder, signature, args: build(builder, args[0])

    return operation


def _chosen(test):
    """The one of two values for which a comparison holds."""
    return lambda builder, a, b: builder.select(test(builder, a, b), a, b)


def _less(builder, a, b):
    return builder.icmp_signed("<", a, b)


def _more(builder, a, b):
    return builder.icmp_signed(">", a, b)


def _ordered(bits):
    """Sign and magnitude of a float to a number that sorts alike as a signed integer."""
    kind = ir.IntType(bits)

    def build(builder, value):
        sign = builder.ashr(value, ir.Constant(kind, bits - 1))
        return builder.xor(value, builder.and_(sign, ir.Constant(kind, (1 << bits - 1) - 1)))

    return build


def _is_zero(bits):
    """1 for either zero of a float, else 0."""
    kind = ir.IntType(bits)

    def build(builder, value):
        magnitude = builder.shl(value, ir.Constant(kind, 1))
        return builder.zext(builder.icmp_unsigned("==", magnitude, ir.Constant(kind, 0)), kind)

    return build


add = _two(lambda builder, a, b: builder.add(a, b))
mul = _two(lambda builder, a, b: builder.mul(a, b))
xor = _two(lambda builder, a, b: builder.xor(a, b))
both = _two(lambda builder, a, b: builder.and_(a, b))
left = _two(lambda builder, a, b: builder.shl(a, b))
right = _two(lambda builder, a, b: builder.lshr(a, b))
least, most = _two(_chosen(_less)), _two(_chosen(_more))
ordered, zero = _one(_ordered(32), word, word), _one(_is_zero(32), word, word)

add_short = _two(lambda builder, a, b: builder.add(a, b), short)
least_short, most_short = _two(_chosen(_less), short), _two(_chosen(_more), short)
ordered_short, zero_short = _one(_ordered(16), short, short), _one(_is_zero(16), short, short)

as_word = _one(lambda builder, value: builder.trunc(value, _WORD), word, types.int64)
longer = _one(lambda builder, value: builder.zext(value, _WORD), word, short)
as_single = _one(lambda builder, value: builder.bitcast(value, _SINGLE), types.float32, word)
from_half = _one(lambda builder, value: builder.bitcast(builder.fpext(builder.bitcast(value, _HALF), _SINGLE), _WORD),
                 word, short)


@intrinsic
def fetch(typing, array, place):
    """Bring the cache line of an element near; nothing is read, and a place outside of the array does no harm."""
    def build(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        byte, number = ir.IntType(8).as_pointer(), _WORD
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        known = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        read, all_levels, of_data = (ir.Constant(number, value) for value in (0, 3, 1))
        builder.call(known, [builder.bitcast(builder.gep(data, [args[1]]), byte), read, all_levels, of_data])
        return context.get_dummy_value()

    return types.void(array, types.int64), build
