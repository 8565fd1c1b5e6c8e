# SPDX-License-Identifier: Apache-2.0
"""Statements that ptxas writes out as many instructions, put into random programs for compare_machine_code: divisions and roots of every
type, arithmetic of halves, values under guards that all threads have alike, arrays in local memory, calls, atomic operations on shared
memory, loops around them, and collectives of whole warps. They use registers of their own for what lies between, so they may stand
between any two statements of a program; what they leave goes to the program's registers."""

import random
import re

DECLARATIONS = (
    ".reg .b32 %za<8>; .reg .b64 %zq<4>; .reg .f32 %zf<4>; .reg .f64 %zd<4>; .reg .b16 %zh<4>; .reg .pred %zp<4>; .reg .b32 %zi<8>;\n"
)

FUNCTIONS = """.func (.param .b32 r) z_divide(.param .b32 a, .param .b32 b)
{
.reg .b32 %a, %b, %c; .reg .pred %p;
ld.param.b32 %a, [a]; ld.param.b32 %b, [b];
setp.gt.s32 %p, %a, %b;
@%p bra $less;
div.u32 %c, %a, %b; rem.s32 %a, %b, 13; xor.b32 %c, %c, %a;
bra $out;
$less:
rem.u32 %c, %a, %b; mad.lo.u32 %c, %c, 7, %b;
$out:
st.param.b32 [r], %c;
ret;
}
.func (.param .b64 r) z_root(.param .b64 a, .param .b32 b)
{
.reg .b32 %b; .reg .f64 %a, %c; .reg .f32 %f; .reg .b64 %q;
ld.param.b64 %a, [a]; ld.param.b32 %b, [b];
sqrt.rn.f64 %c, %a; cvt.rn.f64.s32 %a, %b; div.rn.f64 %c, %c, %a; cvt.rn.f32.f64 %f, %c; sqrt.rn.f32 %f, %f; cvt.f64.f32 %a, %f;
mov.b64 %q, %a; st.param.b64 [r], %q;
ret;
}
"""


class Writer:
    def __init__(self, seed):
        self.random = random.Random(seed * 7919 + 1)
        self.labels = 0

    def one(self, *items):
        return self.random.choice(items)

    def word(self):
        return self.one(*(f"%r{i}" for i in range(10)), "%u0", "%u1", "%s0", "%s1")

    def long(self):
        return self.one(*(f"%q{i}" for i in range(6)))

    def half(self):
        return self.one(*(f"%h{i}" for i in range(6)))

    def bits32(self):
        return self.one(*(f"%r{i}" for i in range(10)))

    def number32(self):
        return self.one("%f0", "%f1", "%f2", self.bits32())

    def number64(self):
        return self.one("%d0", "%d1", "%d2", self.long())

    def uniform(self, register="%za7"):
        """A load of what all threads read, into `register`."""
        return f"ld.global.b32 {register}, [%start+{4 * self.random.randrange(512)}];\n"

    # ---- kinds of statements ----

    def division(self):
        kind = self.one("u32", "s32", "u32", "s32", "u64", "s64", "u16", "s16")
        operation = self.one("div", "rem")
        before = ""
        if kind.endswith("32"):
            a, d = self.word(), self.bits32()
            b = self.one(self.word(), self.word(), "%za0", "%za7", str(self.one(1, 2, 3, 7, 10, 12, 100, 641, 1000003, 0x7FFFFFFF)))
            before = f"or.b32 %za0, {self.bits32()}, 1; shr.u32 %za0, %za0, {self.random.randrange(31)};\n" + self.uniform()
            if self.one(0, 1):
                before += f"shr.u32 %za1, {a}, {self.random.randrange(28)};\n"
                a = "%za1"
            both = f"div.{kind} %za2, {a}, {b}; rem.{kind} {d}, {a}, {b}; xor.b32 {d}, {d}, %za2;\n"
            return before + self.one(both, f"{operation}.{kind} {d}, {a}, {b};\n")
        if kind.endswith("64"):
            before = f"shr.u64 %zq0, {self.long()}, {self.random.randrange(63)};\n"
            b = self.one(self.long(), "%zq0", "%zq0", str(self.one(3, 10, 1000, 4294967297)))
            return before + f"{operation}.{kind} {self.long()}, {self.long()}, {b};\n"
        return f"{operation}.{kind} {self.half()}, {self.half()}, {self.one(self.half(), '7', '10')};\n"

    def real(self):
        a, b, d = self.number32(), self.number32(), self.number32()
        rounding = self.one("rn", "rn", "rn", "rz", "rm", "rp") + self.one("", "", ".ftz")
        return self.one(
            f"div.{rounding}.f32 {d}, {a}, {b};\n", f"div.{rounding}.f32 {d}, {a}, {b};\n", f"rcp.{rounding}.f32 {d}, {a};\n",
            f"abs.f32 %zf0, {a}; sqrt.{rounding}.f32 {d}, %zf0;\n", f"div.full.f32 {d}, {a}, {b};\n",
            f"cvt.rn.f32.s32 %zf0, {self.word()}; cvt.rn.f32.u32 %zf1, {self.word()}; div.rn.f32 {d}, %zf0, %zf1;\n",
            f"div.rn.f32 {d}, 0f3F800000, {a};\n", f"div.rn.f32 {d}, {a}, 0f40400000;\n")

    def double(self):
        a, b, d = self.number64(), self.number64(), self.number64()
        return self.one(
            f"div.rn.f64 {d}, {a}, {b};\n", f"rcp.rn.f64 {d}, {a};\n", f"abs.f64 %zd0, {a}; sqrt.rn.f64 {d}, %zd0;\n",
            f"cvt.rn.f64.s32 %zd0, {self.word()}; cvt.rn.f64.u32 %zd1, {self.word()}; div.rn.f64 {d}, %zd0, %zd1;\n",
            f"div.rn.f64 {d}, {a}, 0d4008000000000000;\n", f"fma.rn.f64 {d}, {a}, {b}, {d};\n")

    def halves(self):
        packed, kind = self.one(True, False), self.one("f16", "bf16")
        register = self.bits32 if packed else self.half
        a, b, c, d = register(), register(), register(), register()
        type = kind + ("x2" if packed else "")
        ftz = self.one("", ".ftz") if kind == "f16" else ""
        sat = self.one("", "", ".sat") if kind == "f16" else ""
        fused = self.one("", ".relu", sat)
        return self.one(
            f"{self.one('add', 'sub', 'mul')}.rn{ftz}{sat}.{type} {d}, {a}, {b};\n",
            f"fma.rn{ftz}{fused}.{type} {d}, {a}, {b}, {c};\n",
            f"fma.rn{ftz}.{type} {d}, {a}, {b}, {c}; add.rn{ftz}.{type} {d}, {d}, {a};\n",
            f"{self.one('min', 'max')}{ftz}{self.one('', '.NaN')}.{type} {d}, {a}, {b};\n",
            f"{self.one('neg', 'abs')}{ftz}.{type} {d}, {a};\n",
            f"cvt.rn{self.one('', '.relu')}.{kind}x2.f32 {self.bits32()}, {self.number32()}, {self.number32()};\n",
            f"cvt.f32.{kind} %zf0, {self.half()}; mul.rn.f32 %zf0, %zf0, {self.number32()}; cvt.rn.{kind}.f32 {self.half()}, %zf0;\n",
            f"setp.{self.one('lt', 'ge', 'eq', 'neu')}.{kind} %zp0, {self.half()}, {self.half()}; selp.b32 {self.bits32()}, {self.bits32()}, {self.bits32()}, %zp0;\n",
            f"setp.{self.one('lt', 'ge', 'ne')}.{kind}x2 %zp0|%zp1, {self.bits32()}, {self.bits32()}; selp.b32 %za0, 1, 3, %zp0; selp.b32 {self.bits32()}, %za0, 7, %zp1;\n",
            f"mov.b32 {{%zh0, %zh1}}, {self.bits32()}; add.rn.{kind} %zh0, %zh0, %zh1; mov.b32 {self.bits32()}, {{%zh1, %zh0}};\n",
            f"ex2.approx.ftz.bf16x2 {self.bits32()}, {self.bits32()};\n", f"tanh.approx.f16x2 {self.bits32()}, {self.bits32()};\n",
            f"cvt.rn.f16.{self.one('s32', 'u32')} {self.half()}, {self.word()};\n", f"cvt.rni.s32.f16 {self.bits32()}, {self.half()};\n",
            f"fma.rn.bf16 {self.half()}, {self.half()}, {self.half()}, {self.half()};\n")

    def uniform_guard(self):
        """Guards and branches that all threads take alike; addresses and sums that depend on them."""
        test = self.uniform() + f"setp.{self.one('gt.s32', 'lt.s32', 'eq.u32', 'ge.u32')} %zp2, %za7, {self.random.randrange(50)};\n"
        guard = self.one("@%zp2", "@!%zp2")
        d, a = self.bits32(), self.word()
        body = self.one(
            f"{guard} add.u32 {d}, {a}, {self.random.randrange(9)};\n",
            f"{guard} mad.lo.u32 {d}, {a}, 3, {d};\n",
            f"mov.u32 %za3, %t; {guard} add.u32 %za3, %za3, {self.random.randrange(1, 9)}; and.b32 %za3, %za3, 63; mul.wide.u32 %zq3, %za3, 4; add.u64 %zq3, %zq3, %start; ld.global.b32 {d}, [%zq3];\n",
            f"or.b32 %za0, {self.bits32()}, 1; {guard} {self.one('div', 'rem')}.{self.one('u32', 's32')} {d}, {a}, %za0;\n",
            f"selp.b32 {d}, {a}, {self.word()}, %zp2;\n",
            f"{guard} mul.rn.f32 {self.number32()}, {self.number32()}, 0f3FC00000;\n",
            f"{guard} mul.rn.f64 {self.number64()}, {self.number64()}, 0d3FF8000000000000;\n")
        if self.one(0, 1):
            return test + body
        label = self.label()
        return test + f"{guard} bra {label};\n" + self.few(2) + body + f"{label}:\n"

    def local_array(self):
        n = self.random.randrange(4)
        return (
            f"and.b32 %za3, {self.word()}, 15; mul.wide.u32 %zq2, %za3, 4; add.u64 %zq2, %local, %zq2; st.local.b32 [%zq2], {self.bits32()};\n"
            f"add.u32 %za3, %za3, {n}; and.b32 %za3, %za3, 15; mul.wide.u32 %zq2, %za3, 4; add.u64 %zq2, %local, %zq2; ld.local.{self.one('b32', 'u16', 's8')} {self.bits32()}, [%zq2];\n")

    def shared_atomic(self):
        operation, kind = self.one(
            ("add", "u32"), ("add", "s32"), ("min", "s32"), ("max", "u32"), ("and", "b32"), ("or", "b32"), ("xor", "b32"), ("exch", "b32"), ("inc", "u32"), ("dec", "u32"),
            ("add", "f32"), ("cas", "b32"), ("add", "u64"), ("exch", "b64"), ("cas", "b64"), ("min", "s64"), ("max", "u64"), ("xor", "b64"), ("add", "f64"), ("add.noftz", "f16x2"),
            ("add.noftz", "bf16x2"), ("add.noftz", "f16"), ("add.noftz", "bf16"))
        wide, short = kind.endswith("64"), kind in ("f16", "bf16")
        register = self.long if wide else self.half if short else self.bits32
        place = self.random.randrange(4) * 8 if wide else self.random.randrange(8) * 4
        space, address, before = ".shared", f"[%own_shared+{place}]", ""
        if self.one(0, 0, 1):
            before = "cvt.u64.u32 %zq1, %own_shared; cvta.shared.u64 %zq1, %zq1;\n"
            space, address = "", f"[%zq1+{place}]"
        more = f", {register()}" if operation == "cas" else ""
        if self.one(0, 1) and operation not in ("exch", "cas"):
            return before + f"red{space}.{operation}.{kind} {address}, {register()};\n"
        return before + f"atom{space}.{operation}.{kind} {register()}, {address}, {register()}{more};\n"

    def call(self):
        if self.one(0, 1):
            return (f"{{ .param .b32 a; .param .b32 b; .param .b32 r; st.param.b32 [a], {self.word()}; st.param.b32 [b], {self.word()}; call (r), z_divide, (a, b); "
                    f"ld.param.b32 {self.bits32()}, [r]; }}\n")
        return (f"{{ .param .b64 a; .param .b32 b; .param .b64 r; st.param.b64 [a], {self.long()}; st.param.b32 [b], {self.word()}; call (r), z_root, (a, b); "
                f"ld.param.b64 {self.long()}, [r]; }}\n")

    def loop(self):
        """Some rounds: as many for all threads, or not."""
        label, counter = self.label(), f"%zi{self.labels % 8}"
        rounds = self.one(f"mov.u32 {counter}, {self.random.randrange(1, 6)};\n", self.uniform(counter) + f"and.b32 {counter}, {counter}, 3;\n", f"and.b32 {counter}, %t, 3;\n")
        return rounds + f"{label}:\n" + self.few(3) + f"sub.s32 {counter}, {counter}, 1; setp.ge.s32 %zp3, {counter}, 0;\n@%zp3 bra {label};\n"

    def collective(self):
        """For whole warps that are together."""
        return self.one(
            f"shfl.sync.{self.one('up', 'down', 'bfly', 'idx')}.b32 {self.bits32()}, {self.bits32()}, {self.one(self.random.randrange(32), self.bits32())}, {self.one('0', '31', '0x1c1f', '0x101f')}, %mask;\n",
            f"shfl.sync.bfly.b32 %za0|%zp0, {self.bits32()}, 1, 31, %mask; selp.b32 {self.bits32()}, %za0, 5, %zp0;\n",
            f"setp.lt.s32 %zp0, {self.word()}, {self.word()}; vote.sync.ballot.b32 {self.bits32()}, %zp0, %mask;\n",
            f"setp.lt.s32 %zp0, {self.word()}, {self.word()}; vote.sync.{self.one('any', 'all', 'uni')}.pred %zp1, %zp0, %mask; selp.b32 {self.bits32()}, 3, 4, %zp1;\n",
            f"and.b32 %za0, {self.word()}, 3; match.any.sync.b32 {self.bits32()}, %za0, %mask;\n",
            f"redux.sync.{self.one('add.u32', 'min.s32', 'max.u32', 'and.b32', 'or.b32', 'xor.b32')} {self.bits32()}, {self.bits32()}, %mask;\n")

    def label(self):
        self.labels += 1
        return f"$Z{self.labels}"

    def few(self, most):
        return "".join(self.simple() for _ in range(self.random.randrange(1, most + 1)))

    def simple(self):
        return self.one(self.division, self.division, self.real, self.double, self.halves, self.halves, self.local_array, self.shared_atomic, self.call)()

    def statement(self):
        return self.one(self.simple, self.simple, self.simple, self.uniform_guard, self.uniform_guard, self.loop)()


def with_compiled_statements(text, seed, count):
    """`text` with `count` such statements between those of its kernel; the registers have to be those of fuzz_programs."""
    writer = Writer(seed)
    head, entry = text.split(".visible .entry", 1)
    lines = entry.split("\n")
    declared = next(i for i, line in enumerate(lines) if line.startswith(".reg"))
    lines.insert(declared, DECLARATIONS.rstrip())
    begin = next(i for i, line in enumerate(lines) if line.endswith("bar.sync 0;")) + 1
    end = lines.index("$finish:")
    # Behind what changes the flow, or between parts of one statement, nothing may be put.
    places = [i for i in range(begin, end + 1)
              if not re.search(r"param|\.cc|^[.{}]|^ |addc|subc|madc|call", lines[i]) and not re.search(r"\.cc|addc|subc|madc|param|^\.|call", lines[i - 1])]
    at = sorted((writer.random.choice(places) for _ in range(count)), reverse=True) if places else []
    for place in at:
        lines.insert(place, writer.statement().rstrip())
    lines.insert(begin, "".join(writer.collective() for _ in range(writer.random.randrange(4))).rstrip())
    return head + FUNCTIONS + ".visible .entry" + "\n".join(lines)
