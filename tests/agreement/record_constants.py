#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ptxas makes of initial values: record_constants.py PTXAS SEED COUNT > constants.txt

Random declarations `.global .TYPE x... = VALUE;` of constant expressions (manual 4.5), alone and in arrays. A line is the bytes
that the cubin holds, `-` where ptxas refuses, and the declaration. 2,000 take some 20 seconds on two cores."""
import concurrent.futures, os, random, struct, subprocess, sys, tempfile

INTEGERS = """0 1 2 3 7 31 32 33 63 64 65 100 255 256 65535 65536 2147483647 2147483648 4294967295 4294967296 9223372036854775807
9223372036854775808 18446744073709551615 0x7f 0x80 0xFF 0x8000 0xFFFFFFFF 0x80000000 0xFFFFFFFFFFFFFFFF 0x8000000000000000 017 0777
0b101 0b11111111 5U 0xFFU 0x80000000U 0b1U 07U WARP_SZ 1U 2147483648U 18446744073709551615U""".split()
REALS = """1.5 0.0 1e3 0f3F800000 0d3FF0000000000000 0f80000000 1.0e-40 3.4e38 1e400 0f7F800000 0d7FF8000000000001 0fFFC00001 .5 5.
2.0 1e-310 1.00000005960464477 65504.0 1e-8""".split()
UNARY = ["-", "+", "~", "!", "(.s64)", "(.u64)"]
BINARY = "* / % + - >> << < > <= >= == != & ^ | && ||".split()
TYPES = "u8 s8 b8 u16 s16 b16 u32 s32 b32 u64 s64 b64 f32 f64".split()


def expression(draw, depth, reals):
    kind = draw.random()
    if depth == 0 or kind < 0.15:
        return draw.choice(REALS if draw.random() < reals else INTEGERS)
    deeper = lambda: expression(draw, depth - 1, reals)
    if kind < 0.4:
        return draw.choice(UNARY) + draw.choice(["", "", " "]) + deeper()
    if kind < 0.8:
        return f"{deeper()} {draw.choice(BINARY)} {deeper()}"
    if kind < 0.92:
        return f"({deeper()})"
    return f"({deeper()} ? {deeper()} : {deeper()})"


def declaration(draw):
    kind = draw.choice(TYPES)
    reals = 0.9 if kind[0] == "f" else 0.05
    if draw.random() < 0.7:
        return f".{kind} x = {expression(draw, draw.choice([0, 1, 1, 2, 2, 3, 4]), reals)};"
    dimensions = [draw.choice([1, 2, 3, 5]) for _ in range(draw.choice([1, 1, 2, 3]))]

    def initial(level):
        if level == len(dimensions) or draw.random() < 0.05:
            return expression(draw, draw.choice([0, 0, 1]), reals)
        count = draw.choice([dimensions[level]] * 4 + [1, dimensions[level] + 1])
        return "{" + ", ".join(initial(level + 1) for _ in range(count)) + "}"

    sizes = "".join(f"[{n}]" for n in dimensions)
    if draw.random() < 0.15:
        sizes = "[]" + sizes[sizes.index("]") + 1:]
    return f".{kind} x{sizes} = {initial(0)};"


def section(cubin, name):
    offset = struct.unpack_from("<Q", cubin, 0x28)[0]
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, offset + i * size) for i in range(count)]
    for header in headers:
        at = headers[names][4] + header[0]
        if cubin[at:cubin.index(b"\0", at)].decode() == name:
            return b"\0" * header[5] if header[1] == 8 else cubin[header[4]:header[4] + header[5]]
    return None


def ask(ptxas, text):
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = os.path.join(folder, "x.ptx"), os.path.join(folder, "x.cubin")
        with open(source, "w") as file:
            file.write(f".version 9.0\n.target sm_90\n.address_size 64\n.visible .global {text}\n")
        status = subprocess.run([ptxas, "-arch=sm_90", source, "-o", cubin], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
        if status < 0:
            return None  # ptxas crashed: no verdict
        if status != 0:
            return "-"
        with open(cubin, "rb") as file:
            data = file.read()
        return (section(data, ".nv.global.init") or section(data, ".nv.global")).hex()


def main():
    ptxas, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    draw = random.Random(seed)
    texts = list(dict.fromkeys(declaration(draw) for _ in range(count)))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = list(pool.map(lambda text: ask(ptxas, text), texts))
    print(f"# ptxas 13.0, sm_90: record_constants.py PTXAS {seed} {count}. The bytes of the variable, or - where it is refused.")
    for text, answer in zip(texts, answers):
        if answer is not None:
            print(answer, text)


main()
