"""Ask the processor for lines of memory before they are needed: a kernel that visits random places then waits for many
of them at once, instead of for one after the other. Has no effect on results."""

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

LINE = 64
"""Bytes of a line of the cache."""


@intrinsic
def prefetch(typingctx, array, place, offset):
    """Request the line that is `offset` bytes behind the line of an array that has number `place`."""

    def code(context, builder, signature, arguments):
        kind = signature.args[0]
        view = context.make_array(kind)(context, builder, arguments[0])
        stride = cgutils.unpack_tuple(builder, view.strides, kind.ndim)[0]
        first = builder.ptrtoint(view.data, ir.IntType(64))
        address = builder.add(first, builder.add(builder.mul(arguments[1], stride), arguments[2]))
        pointer = builder.inttoptr(address, ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number]),
            "llvm.prefetch.p0i8" if not getattr(ir.PointerType, "is_opaque", False) else "llvm.prefetch.p0",
        )
        builder.call(function, [pointer, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), code


@njit(cache=True)
def prefetch_rows(array, first, rows):
    """Request some rows of a matrix of 64-bit numbers."""
    for offset in range(0, rows * array.shape[1] * 8 + LINE - 1, LINE):
        prefetch(array, first, offset)
