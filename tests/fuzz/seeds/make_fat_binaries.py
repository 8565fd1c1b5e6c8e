#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of fat_binary/: containers as described in runtime/module/fatbin.cpp, with plain, LZ4 and Zstandard
entries, several architectures, options and names. Needs the programs lz4 and zstd."""
import pathlib, struct, subprocess

FOLDER = pathlib.Path(__file__).parent / "fat_binary"
TEXT = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n" + b"// padding\n" * 8 + b"\0"


def entry(payload, text_size=0, kind=1, arch=80, flags=0, options=b""):
    stored = len(payload) if flags else 0
    payload += b"\0" * (-len(payload) % 8)
    size = 64 + (8 + len(options) + 7 & ~7 if options else 0)
    header = struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, size, len(payload), stored, 64 if options else 0, 0, 8, arch, 0, 0, flags, 0,
                         text_size)
    if options:
        header += struct.pack("<II", 72, len(options)) + options
    return header.ljust(size, b"\0") + payload


def container(*entries):
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def block(program, *arguments):
    return subprocess.run([program, *arguments], input=TEXT, capture_output=True, check=True).stdout


def main():
    zstd = block("zstd", "-q", "--no-check", "--stream-size=%d" % len(TEXT))
    frame = block("lz4", "-q", "--no-frame-crc", "-BX", "--content-size")
    size = struct.unpack_from("<I", frame, 15)[0]
    lz4 = frame[19:19 + size]
    seeds = {
        "plain": container(entry(TEXT)),
        "zstd": container(entry(zstd, len(TEXT), flags=0x8000)),
        "lz4": container(entry(lz4, len(TEXT), flags=0x2000)),
        "several": container(entry(b"\x7fELF", kind=2, arch=90), entry(TEXT, arch=75, options=b"-O3\0"),
                             entry(TEXT, arch=90, flags=0x100000), entry(b"x", kind=8, arch=80)),
        "empty": container(),
        "text": TEXT[:-1],
        "elf": b"\x7fELF\2\1\1" + b"\0" * 57,
    }
    for name, data in seeds.items():
        (FOLDER / name).write_bytes(data)


main()
