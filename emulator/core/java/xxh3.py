"""XXH3-64 with seed 0, the hash of a group's topics since 4.1 (KIP-1101).

Specification: the XXH3 section of xxHash's `xxhash_spec.md`.
"""

from __future__ import annotations

import struct

UINT32, UINT64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF

P32_1, P32_2, P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
P64_1, P64_2, P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P64_4, P64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
PRIME_MX1, PRIME_MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25

SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221b8084674f743248e"
    "e03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8a8fa763fe39c343ff9dcbbc7c70b4f1d8a"
    "51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8f"
    "f8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)

TINY_MAX, SMALL_MAX, MEDIUM_MAX, LARGE_MAX = 8, 16, 128, 240
STRIPE, ACCUMULATORS = 64, 8
STRIPES_PER_BLOCK = (len(SECRET) - STRIPE) // 8


def xxh3_64(data: bytes) -> int:
    """Return the hash of at least four bytes, as an unsigned number."""
    if len(data) <= SMALL_MAX:
        return _small(data)
    if len(data) <= MEDIUM_MAX:
        return _medium(data)
    if len(data) <= LARGE_MAX:
        return _large(data)
    return _long(data)


def _u32(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _u64(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _fold(a: int, b: int) -> int:
    product = a * b
    return product >> 64 ^ product & UINT64


def _avalanche(code: int) -> int:
    code ^= code >> 37
    code = code * PRIME_MX1 & UINT64
    return code ^ code >> 32


def _mix16(data: bytes, at: int, secret: int) -> int:
    return _fold(_u64(data, at) ^ _u64(SECRET, secret), _u64(data, at + 8) ^ _u64(SECRET, secret + 8))


def _small(data: bytes) -> int:
    length = len(data)
    if length > TINY_MAX:
        low = _u64(SECRET, 24) ^ _u64(SECRET, 32) ^ _u64(data, 0)
        high = _u64(SECRET, 40) ^ _u64(SECRET, 48) ^ _u64(data, length - 8)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche(length + swapped + high + _fold(low, high) & UINT64)
    combined = _u32(data, length - 4) + (_u32(data, 0) << 32)
    code = combined ^ _u64(SECRET, 8) ^ _u64(SECRET, 16)
    code ^= _rotate(code, 49) ^ _rotate(code, 24)
    code = code * PRIME_MX2 & UINT64
    code ^= (code >> 35) + length
    code = code * PRIME_MX2 & UINT64
    return code ^ code >> 28


def _rotate(number: int, bits: int) -> int:
    return (number << bits | number >> 64 - bits) & UINT64


def _medium(data: bytes) -> int:
    length = len(data)
    code = length * P64_1
    for pair in range((length - 1) // 32 + 1):
        code += _mix16(data, 16 * pair, 32 * pair) + _mix16(data, length - 16 * (pair + 1), 32 * pair + 16)
    return _avalanche(code & UINT64)


def _large(data: bytes) -> int:
    length = len(data)
    code = length * P64_1 + sum(_mix16(data, at, at) for at in range(0, 128, 16))
    code = _avalanche(code & UINT64)
    code += sum(_mix16(data, at, at - 128 + 3) for at in range(128, length // 16 * 16, 16))
    return _avalanche(code + _mix16(data, length - 16, 136 - 17) & UINT64)


def _long(data: bytes) -> int:
    lanes = [P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1]
    stripes = (len(data) - 1) // STRIPE
    for stripe in range(stripes):
        step = stripe % STRIPES_PER_BLOCK
        _accumulate(lanes, data, stripe * STRIPE, step * 8)
        if step == STRIPES_PER_BLOCK - 1:
            lanes = _scrambled(lanes)
    _accumulate(lanes, data, len(data) - STRIPE, len(SECRET) - STRIPE - 7)
    code = len(data) * P64_1
    for pair in range(ACCUMULATORS // 2):
        code += _fold(
            lanes[2 * pair] ^ _u64(SECRET, 11 + 16 * pair), lanes[2 * pair + 1] ^ _u64(SECRET, 19 + 16 * pair)
        )
    return _avalanche(code & UINT64)


def _accumulate(lanes: list[int], data: bytes, at: int, secret: int) -> None:
    words = struct.unpack_from("<8Q", data, at)
    for lane, (word, key) in enumerate(zip(words, struct.unpack_from("<8Q", SECRET, secret), strict=True)):
        keyed = word ^ key
        lanes[lane ^ 1] = lanes[lane ^ 1] + word & UINT64
        lanes[lane] = lanes[lane] + (keyed & UINT32) * (keyed >> 32) & UINT64


def _scrambled(lanes: list[int]) -> list[int]:
    keys = struct.unpack_from("<8Q", SECRET, len(SECRET) - STRIPE)
    return [(lane ^ lane >> 47 ^ key) * P32_1 & UINT64 for lane, key in zip(lanes, keys, strict=True)]
