#!/usr/bin/env python3
"""Removes the mark of -Bsymbolic from a shared library: usage: unsymbolic.py FILE

Its references stay bound to its own functions, as the linker left them. Without the mark, dlsym(RTLD_DEFAULT) in the
library searches as in any other object: from the program on, instead of from the library itself.
"""

import struct
import sys

PT_DYNAMIC, DT_SYMBOLIC, DT_DEBUG, DT_FLAGS, DF_SYMBOLIC = 2, 16, 21, 30, 2

with open(sys.argv[1], "r+b") as file:
    data = bytearray(file.read())
    headers, count = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, 56)[0]
    for header in range(headers, headers + 56 * count, 56):
        kind, offset, size = struct.unpack_from("<I4xQ16xQ", data, header)
        if kind != PT_DYNAMIC:
            continue
        for at in range(offset, offset + size, 16):
            tag, value = struct.unpack_from("<QQ", data, at)
            if tag == DT_SYMBOLIC:
                struct.pack_into("<QQ", data, at, DT_DEBUG, 0)
            elif tag == DT_FLAGS:
                struct.pack_into("<QQ", data, at, DT_FLAGS, value & ~DF_SYMBOLIC)
    file.seek(0)
    file.write(data)
