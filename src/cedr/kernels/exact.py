"""Exact sums of any numbers, with nothing but integer columns that are added and subtracted.

A number is a sum of digits of 32 bits at fixed places: digit `i` counts `2**(LOWEST + align + 32 * i)`. Each place that
is used has a column of its own. A column adds up the digits of many rows without carrying, which 63 bits allow for
2**31 rows; so adding a row and taking it out again cancel exactly, in any order. Only when a value is read are digits
carried, and the exact sum is rounded once.

`align` moves the places so that ordinary data need few of them. `slot` is the column of each place, -1 for none.
"""

import math

import numpy as np
from numba import njit

DIGIT = 32
MASK = np.uint64(2**32 - 1)
LOWEST = -2208
"""The lowest bit of the lowest place: below the square of the least double."""
PLACES = 144
UNITS = -LOWEST // DIGIT
"""The place of whole numbers below 2**32 when `align` is 0."""
CERTAIN = 900
"""What lies beyond `2**±CERTAIN` may be rounded twice or overflow; Python computes it."""


EXACT, NEAR, HARD = 0, 1, 2
"""How far a sum in two doubles can be trusted: to the last bit, but for a tiny error of the second, not at all."""


def alignment(top):
    """How to move the places so that a digit ends just below bit `top`."""
    return (top - LOWEST) % DIGIT


@njit(cache=True)
def top_bit(bits):
    """Of doubles, given as their bits: the first power of two above all finite ones; -2000 if all are zero."""
    top = -2000
    for b in bits:
        e = (b >> 52) & 0x7FF
        if e != 0x7FF and b << 1 != 0:
            top = max(top, e - 1022)
    return top


@njit(cache=True)
def put(magnitude, negative, offset, slot, out, row, missing):
    """Add an unsigned word, shifted up by `offset` bits, to the digits of a row; note which places have no column."""
    place, shift = offset >> 5, np.uint64(offset & 31)
    rest = magnitude >> (np.uint64(32) - shift)
    digits = ((magnitude << shift) & MASK, rest & MASK, rest >> np.uint64(32))
    for i in range(3):
        if digits[i] != 0:
            column = slot[place + i]
            if column < 0:
                missing[place + i] = True
            elif negative:
                out[row, column] -= np.int64(digits[i])
            else:
                out[row, column] += np.int64(digits[i])


@njit(cache=True)
def put_square(magnitude, offset, slot, out, row, missing):
    high, low = magnitude >> np.uint64(32), magnitude & MASK
    put(low * low, False, offset, slot, out, row, missing)
    if high != 0:
        put(high * low, False, offset + 33, slot, out, row, missing)
        put(high * high, False, offset + 64, slot, out, row, missing)


@njit(cache=True)
def put_floats(bits, align, square, slot, out):
    """The digits of doubles, given as their bits, or of their squares; NaN and infinities have none."""
    missing = np.zeros(PLACES, dtype=np.bool_)
    for row in range(len(bits)):
        e = (bits[row] >> 52) & 0x7FF
        mantissa = np.uint64(bits[row] & 0xFFFFFFFFFFFFF)
        if e == 0x7FF or (e == 0 and mantissa == 0):
            continue
        if e == 0:
            e = 1
        else:
            mantissa |= np.uint64(1 << 52)
        if square:
            put_square(mantissa, 2 * (e - 1075) - LOWEST - align, slot, out, row, missing)
        else:
            put(mantissa, bits[row] < 0, e - 1075 - LOWEST - align, slot, out, row, missing)
    return missing


@njit(cache=True)
def put_whole(high, low, square, slot, out):
    """The digits of whole numbers of 128 bits, given as two words each, or of their squares."""
    missing = np.zeros(PLACES, dtype=np.bool_)
    digits = np.empty(4, dtype=np.uint64)
    for row in range(len(high)):
        h, w = np.uint64(high[row]), np.uint64(low[row])
        negative = high[row] < 0
        if negative:
            w = ~w + np.uint64(1)
            h = ~h + np.uint64(1 if w == 0 else 0)
        if not square:
            put(w, negative, -LOWEST, slot, out, row, missing)
            put(h, negative, -LOWEST + 64, slot, out, row, missing)
        elif h == 0:
            put_square(w, -LOWEST, slot, out, row, missing)
        else:
            digits[0], digits[1], digits[2], digits[3] = w & MASK, w >> np.uint64(32), h & MASK, h >> np.uint64(32)
            for i in range(4):
                for j in range(4):
                    put(digits[i] * digits[j], False, -LOWEST + 32 * (i + j), slot, out, row, missing)
    return missing


@njit(cache=True)
def put_parts(offsets, parts, align, square, slot, out):
    """The digits of sums that another operator computed: `(square, bit, digit)` triples, some for each row."""
    missing = np.zeros(PLACES, dtype=np.bool_)
    for row in range(len(offsets) - 1):
        for i in range(offsets[row], offsets[row + 1], 3):
            if parts[i] == square:
                digit = parts[i + 2]
                put(np.uint64(abs(digit)), digit < 0, parts[i + 1] - LOWEST - align, slot, out, row, missing)
    return missing


# --- reading ---------------------------------------------------------------------------------------------------------


@njit(cache=True)
def carried(sums, row, slot, first, digits):
    """Fills in the digits of one sum from place `first` on, each in [0, 2**32); is the sum negative?"""
    carry = np.int64(0)
    n = len(digits)
    for i in range(n):
        column = slot[first + i] if first + i < len(slot) else -1
        value = carry + (sums[row, column] if column >= 0 else 0)
        digits[i] = np.uint64(value) & MASK
        carry = value >> 32
    negative = carry < 0
    if negative:
        more = np.uint64(1)
        for i in range(n):
            value = (digits[i] ^ MASK) + more
            digits[i] = value & MASK
            more = value >> np.uint64(32)
    return negative


@njit(cache=True)
def leading(digits, bit):
    """A number whose digits begin at `bit` as `(high + low) * 2**e`, high in [0.5, 1] and rounded correctly."""
    t = len(digits) - 1
    while t >= 0 and digits[t] == 0:
        t -= 1
    if t < 0:
        return 0.0, 0.0, 0
    w0 = digits[t]
    w1 = digits[t - 1] if t > 0 else np.uint64(0)
    w2 = digits[t - 2] if t > 1 else np.uint64(0)
    w3 = digits[t - 3] if t > 2 else np.uint64(0)
    sticky = False
    for i in range(t - 3):
        sticky = sticky or digits[i] != 0
    length = np.int64(math.frexp(np.float64(w0))[1])
    shift = np.uint64(32 - length)
    a = (w0 << np.uint64(32)) | w1
    b = (w2 << np.uint64(32)) | w3
    if shift != 0:
        a = (a << shift) | (b >> (np.uint64(64) - shift))
        b = b << shift
    mantissa, rest = a >> np.uint64(11), np.int64(a & np.uint64(0x7FF))
    odd = mantissa & np.uint64(1) != 0
    up = rest > 1024 or (rest == 1024 and (b != 0 or sticky or odd))
    high = (np.float64(mantissa) + (1.0 if up else 0.0)) * 2.0**-53
    low = (np.float64(rest - 2048 if up else rest) + np.float64(b) * 2.0**-64) * 2.0**-64
    return high, low, bit + 32 * t + length


@njit(cache=True)
def product_error(x, y):
    """x * y and what rounding took from it."""
    p = x * y
    split_x, split_y = x * 134217729.0, y * 134217729.0
    xh, yh = split_x - (split_x - x), split_y - (split_y - y)
    xl, yl = x - xh, y - yh
    return p, ((xh * yh - p) + xh * yl + xl * yh) + xl * yl


@njit(cache=True)
def quotient(high, low, by_high, by_low):
    """`(high + low) / (by_high + by_low)` in two parts."""
    q = high / by_high
    p, error = product_error(q, by_high)
    return q, ((high - p) - error + low - q * by_low) / by_high


@njit(cache=True)
def sure(high, low):
    """Is high + low rounded the same way whatever the small error of low?"""
    return high + low * (1 + 1e-9) == high + low * (1 - 1e-9)


@njit(cache=True)
def narrow_sums(sums, c0, c1, c2, unit):
    """Sums of three neighbouring digits, -1 for a column that is not there: high + low, given the `unit` of the first.

    high is the double nearest to the sum, low what is missing; also how far that is certain.
    """
    high = np.empty(len(sums))
    low = np.empty(len(sums))
    trust = np.full(len(sums), EXACT, dtype=np.int8)
    for row in range(len(sums)):
        d0 = sums[row, c0] if c0 >= 0 else 0
        d1 = (sums[row, c1] if c1 >= 0 else 0) + (d0 >> 32)
        d2 = (sums[row, c2] if c2 >= 0 else 0) + (d1 >> 32)
        a, b = np.float64(d2) * 2.0**64, np.float64(d1 & 0xFFFFFFFF) * 2.0**32
        s = a + b
        v = s - a
        rest = (a - (s - v)) + (b - v) + np.float64(d0 & 0xFFFFFFFF)  # exact while d2 is below 2**41
        h = s + rest
        high[row], low[row] = h * unit, (rest - (h - s)) * unit
        if abs(d2) >= 2**41:
            trust[row] = HARD if abs(d2) >= 2**52 or not sure(s, rest) else NEAR
    return high, low, trust


@njit(cache=True)
def wide_sums(sums, slot, first, width, align):
    """The same of any digits."""
    high = np.empty(len(sums))
    low = np.empty(len(sums))
    trust = np.full(len(sums), NEAR, dtype=np.int8)
    digits = np.empty(width, dtype=np.uint64)
    bit = LOWEST + align + 32 * first
    for row in range(len(sums)):
        negative = carried(sums, row, slot, first, digits)
        h, rest, e = leading(digits, bit)
        if h != 0 and abs(e) > CERTAIN:
            trust[row], e = HARD, 0
        sign = -1.0 if negative else 1.0
        high[row], low[row] = sign * math.ldexp(h, e), sign * math.ldexp(rest, e)
    return high, low, trust


@njit(cache=True)
def ratios(high, low, trust, count, unit):
    """The double nearest to `(high + low) / (count * unit)`; and which are not certain to be.

    A quotient may lie halfway between two doubles. That is certain only if it has no rest.
    """
    out = np.empty(len(high))
    hard = np.zeros(len(high), dtype=np.bool_)
    for row in range(len(high)):
        n = np.float64(max(count[row], 1))
        by, by_low = product_error(n, unit) if unit != 1.0 else (n, 0.0)
        q, rest = quotient(high[row], low[row], by, by_low)
        out[row] = q + rest
        if trust[row] == HARD or not (q == 0 or 1e-250 < abs(q) < 1e250):
            hard[row] = True
        elif not sure(q, rest):
            p, error = product_error(q, by)
            left = (high[row] - p) - error
            p, error = product_error(rest, by)
            hard[row] = trust[row] != EXACT or by_low != 0 or p != left + low[row] or error != 0 or p - left != low[row]
    return out, hard


@njit(cache=True)
def add_product(digits, at, x, y, sign):
    """Add or subtract a product of two digits; digits are signed and not carried."""
    p = x * y
    digits[at] += sign * np.int64(p & MASK)
    digits[at + 1] += sign * np.int64(p >> np.uint64(32))


@njit(cache=True)
def deviations(sums, slot, first, width, align, square_slot, square_first, square_width, square_align, count, unit):
    """Sample standard deviations, `sqrt((n * squares - total**2) / (n * (n - 1))) / unit`, the difference exact."""
    out = np.zeros(len(sums))
    total = np.empty(width, dtype=np.uint64)
    squares = np.empty(square_width, dtype=np.uint64)
    bit, square_bit = LOWEST + align + 32 * first, LOWEST + square_align + 32 * square_first
    base = min(2 * bit, square_bit)
    from_total, from_squares = (2 * bit - base) >> 5, (square_bit - base) >> 5
    size = max(from_total + 2 * width, from_squares + square_width) + 4
    mixed = np.empty(size, dtype=np.int64)
    digits = np.empty(size, dtype=np.uint64)
    for row in range(len(sums)):
        n = count[row]
        if n < 2:
            continue
        carried(sums, row, slot, first, total)
        carried(sums, row, square_slot, square_first, squares)
        mixed[:] = 0
        n_low, n_high = np.uint64(n) & MASK, np.uint64(n) >> np.uint64(32)
        for i in range(square_width):
            if squares[i] != 0:
                add_product(mixed, from_squares + i, squares[i], n_low, 1)
                add_product(mixed, from_squares + i + 1, squares[i], n_high, 1)
        for i in range(width):
            if total[i] != 0:
                for j in range(width):
                    add_product(mixed, from_total + i + j, total[i], total[j], -1)
        carry = np.int64(0)
        for i in range(size):
            value = mixed[i] + carry
            digits[i] = np.uint64(value) & MASK
            carry = value >> 32
        high, low, e = leading(digits, base)
        if high == 0:
            continue
        if e & 1:
            high, low, e = high / 2, low / 2, e + 1
        by, by_low = product_error(np.float64(n), np.float64(n - 1))
        q, rest = quotient(high, low, by, by_low)
        root = math.sqrt(q)
        p, error = product_error(root, root)
        rest = ((q - p) - error + rest) / (2 * root)
        whole, rest = quotient(root, rest, unit, 0.0)
        out[row] = math.ldexp(whole + rest, e >> 1)
    return out


@njit(cache=True)
def whole_sums(sums, slot, first, width):
    """Sums of whole numbers as two words, and which of them need more than 127 bits."""
    high = np.empty(len(sums), dtype=np.int64)
    low = np.empty(len(sums), dtype=np.int64)
    large = np.zeros(len(sums), dtype=np.bool_)
    digits = np.empty(width, dtype=np.uint64)
    words = np.empty(4, dtype=np.uint64)
    for row in range(len(sums)):
        negative = carried(sums, row, slot, first, digits)
        words[:] = 0
        for i in range(width):
            place = first + i - UNITS
            if digits[i] != 0:
                if place < 4:
                    words[place] = digits[i]
                else:
                    large[row] = True
        w = words[0] | words[1] << np.uint64(32)
        h = words[2] | words[3] << np.uint64(32)
        large[row] = large[row] or h >> np.uint64(63) != 0
        if negative:
            w = ~w + np.uint64(1)
            h = ~h + np.uint64(1 if w == 0 else 0)
        high[row], low[row] = np.int64(h), np.int64(w)
    return high, low, large


@njit(cache=True)
def parts_of(sums, slot, first, width, align, square, out, used):
    """Append to each row of `out` the triples `(square, bit, digit)` of its sum, as `put_parts` takes them.

    The places are those of `align` 0 and digits are carried, so equal sums have equal triples.
    """
    digits = np.empty(width, dtype=np.uint64)
    shift = np.uint64(align)
    for row in range(len(sums)):
        negative = carried(sums, row, slot, first, digits)
        below = np.uint64(0)
        for i in range(width + 1):
            here = digits[i] if i < width else np.uint64(0)
            digit = np.int64(((here << shift) | below) & MASK)
            below = here >> (np.uint64(32) - shift)
            if digit != 0:
                out[row, used[row]] = square
                out[row, used[row] + 1] = LOWEST + 32 * (first + i)
                out[row, used[row] + 2] = -digit if negative else digit
                used[row] += 3
