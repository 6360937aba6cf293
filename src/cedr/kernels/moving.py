"""Move rows of a matrix as a whole, and not number by number."""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def move_rows(typingctx, array, to, first, rows):
    """Copy the rows from `first` on to those from `to` on; the two may overlap. Places are not checked."""

    def code(context, builder, signature, arguments):
        kind = signature.args[0]
        view = context.make_array(kind)(context, builder, arguments[0])
        stride = cgutils.unpack_tuple(builder, view.strides, kind.ndim)[0]
        begin = builder.ptrtoint(view.data, ir.IntType(64))

        def pointer(row):
            address = builder.add(begin, builder.mul(row, stride))
            return builder.inttoptr(address, ir.IntType(8).as_pointer())

        cgutils.raw_memmove(builder, pointer(arguments[1]), pointer(arguments[2]), builder.mul(arguments[3], stride), 1)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64, types.int64), code
