"""FarmHash's 64-bit fingerprint. ORQA uses it, as TensorFlow's `to_hash_bucket_fast`, to select dev questions.

It is written here in plain Python, though the packages pyfarmhash and cityhash give the same values: they have wheels for some
platforms and Python versions alone, both claim the module name `farmhash` with functions of different names, and a file of
questions is hashed in a moment here.

Source: Geoff Pike, FarmHash, namespace farmhashna, Hash64 (https://github.com/google/farmhash).
"""

from __future__ import annotations

K0, K1, K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
MASK = 2**64 - 1

Uint64Pair = tuple[int, int]


def fingerprint64(data: bytes) -> int:
    """Return the fingerprint of `data`, from 0 to 2**64 - 1. It is the same on every machine, and not cryptographic."""
    if len(data) <= 16:
        return _up_to_16(data)
    if len(data) <= 32:
        return _mixed(*_ends(data, K1), _multiplier(data))
    if len(data) <= 64:
        return _up_to_64(data)
    return _longer(data)


def _word(data: bytes, at: int, size: int = 8) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _rotated(value: int, bits: int) -> int:
    value &= MASK
    return (value >> bits | value << (64 - bits)) & MASK


def _shifted(value: int) -> int:
    value &= MASK
    return value ^ value >> 47


def _mixed(u: int, v: int, multiplier: int) -> int:
    """Mix two words into one, as Murmur does."""
    a = _shifted(((u ^ v) & MASK) * multiplier)
    return _shifted((v ^ a) * multiplier) * multiplier & MASK


def _multiplier(data: bytes) -> int:
    return K2 + 2 * len(data)


def _up_to_16(data: bytes) -> int:
    size, multiplier = len(data), _multiplier(data)
    if size >= 8:
        a, b = _word(data, 0) + K2, _word(data, size - 8)
        return _mixed(_rotated(b, 37) * multiplier + a, (_rotated(a, 25) + b) * multiplier, multiplier)
    if size >= 4:
        return _mixed(size + (_word(data, 0, 4) << 3), _word(data, size - 4, 4), multiplier)
    if size > 0:
        y, z = data[0] + (data[size >> 1] << 8), size + (data[-1] << 2)
        return _shifted(y * K2 ^ z * K0) * K2 & MASK
    return K2


def _ends(data: bytes, key: int) -> Uint64Pair:
    """Combine the 16 bytes at each end of `data` into two words."""
    size, multiplier = len(data), _multiplier(data)
    a, b = _word(data, 0) * key, _word(data, 8)
    c, d = _word(data, size - 8) * multiplier, _word(data, size - 16) * K2
    return (_rotated(a + b, 43) + _rotated(c, 30) + d) & MASK, (a + _rotated(b + K2, 18) + c) & MASK


def _up_to_64(data: bytes) -> int:
    multiplier, size = _multiplier(data), len(data)
    y, second = _ends(data, K2)
    z = _mixed(y, second, multiplier)
    a = _word(data, 0) * K2
    e, f = _word(data, 16) * multiplier, _word(data, 24)
    g, h = (y + _word(data, size - 32)) * multiplier, (z + _word(data, size - 24)) * multiplier
    return _mixed(_rotated(e + f, 43) + _rotated(g, 30) + h, e + _rotated(f + a, 18) + g, multiplier)


def _longer(data: bytes) -> int:
    """Hash in rounds of 64 bytes. The last round takes the last 64 bytes, some of which may have been hashed before."""
    seed = 81
    x, y = seed * K2 + _word(data, 0), seed * K1 + 113
    z = _shifted(y * K2 + 113) * K2
    v = w = (0, 0)
    rest = (len(data) - 1) % 64
    for start in range(0, len(data) - 1 - rest, 64):
        x, y, z, v, w = _round(data[start : start + 64], x, y, z, v, w, K1, 1)
    multiplier = K1 + ((z & 0xFF) << 1)
    w = (w[0] + rest, w[1])
    v = (v[0] + w[0], v[1])
    w = (w[0] + v[0], w[1])
    x, y, z, v, w = _round(data[-64:], x, y, z, v, w, multiplier, 9)
    return _mixed(_mixed(v[0], w[0], multiplier) + _shifted(y) * K0 + z, _mixed(v[1], w[1], multiplier) + x, multiplier)


def _round(
    block: bytes, x: int, y: int, z: int, v: Uint64Pair, w: Uint64Pair, multiplier: int, factor: int
) -> tuple[int, int, int, Uint64Pair, Uint64Pair]:
    x = _rotated(x + y + v[0] + _word(block, 8), 37) * multiplier
    y = _rotated(y + v[1] + _word(block, 48), 42) * multiplier
    x = (x ^ w[1] * factor) & MASK
    y = (y + v[0] * factor + _word(block, 40)) & MASK
    z = _rotated(z + w[0], 33) * multiplier & MASK
    v = _weak(block[:32], v[1] * multiplier, x + w[0])
    w = _weak(block[32:], z + w[1], y + _word(block, 16))
    return z, y, x, v, w


def _weak(block: bytes, a: int, b: int) -> Uint64Pair:
    """Combine 32 bytes and two seeds into two words."""
    first, second, third, fourth = (_word(block, at) for at in (0, 8, 16, 24))
    a += first
    b = _rotated(b + a + fourth, 21)
    last = a + second + third
    return (last + fourth) & MASK, (b + _rotated(last, 44) + a) & MASK
