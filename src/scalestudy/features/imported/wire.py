"""Event files of TensorBoard on the wire: TFRecord frames, and the few fields of Protocol Buffers in them."""

import struct
from collections.abc import Iterator
from typing import BinaryIO

MOST_RECORD = 64 * 1024
"""Bytes of a record that is read; scalars are small, and pictures and graphs are passed over."""
_POLYNOMIAL = 0x82F63B78


class BrokenError(ValueError):
    """Bytes that are no record, or no message."""


def records(stream: BinaryIO) -> Iterator[bytes]:
    """Small records of a TFRecord file, each checked; ends where a file was still being written.

    Raises:
        BrokenError: A checksum does not hold.
    """
    while len(head := stream.read(12)) == 12:
        length, check = struct.unpack("<QI", head)
        if _masked(head[:8]) != check:
            raise BrokenError("the length of a record is not what was written")
        if length > MOST_RECORD:
            stream.seek(length + 4, 1)
            continue
        data, end = stream.read(length), stream.read(4)
        if len(data) < length or len(end) < 4:
            return
        if _masked(data) != struct.unpack("<I", end)[0]:
            raise BrokenError("a record is not what was written")
        yield data


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field of a message: an integer, or bytes (also of fixed ones).

    Raises:
        BrokenError: It is none.
    """
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        kind = key & 7
        if kind == 0:
            value, place = _varint(message, place)
            yield key >> 3, value
            continue
        if kind == 2:
            length, place = _varint(message, place)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise BrokenError("a field of an unknown kind")
        if place + length > len(message):
            raise BrokenError("a field that is longer than its message")
        yield key >> 3, message[place : place + length]
        place += length


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(data) and shift < 70:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
    raise BrokenError("a number without an end")


def _table() -> tuple[int, ...]:
    found = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        found.append(value)
    return tuple(found)


_CRC = _table()


def checksum(data: bytes) -> int:
    """CRC-32C (Castagnoli, RFC 3720, appendix B.4)."""
    value = 0xFFFFFFFF
    for byte in data:
        value = _CRC[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF


def _masked(data: bytes) -> int:
    """As TFRecord writes it: turned by 15 bits, plus a constant."""
    value = checksum(data)
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF
