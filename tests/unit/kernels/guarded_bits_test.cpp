// SPDX-License-Identifier: Apache-2.0
// Bits of two registers, chosen by a constant, into one of them under a guard: LLVM's masked ternary instruction has the truth table of another
// order of operands there (translator/llvm/hide_bit_selectors.h).
#include "kernel.h"

#include <catch2/catch.hpp>

using namespace ptarmigan::test;

namespace {

constexpr unsigned threads = 64;
constexpr std::uint32_t selector = 0x7ffffff0;

std::uint32_t first(unsigned i) { return i * 0x9e3779b9u ^ 0x1234567u; }
std::uint32_t second(unsigned i) { return ~(i * 0x85ebca6bu) + 77; }

struct Case {
    const char* statement; ///< of %r1 and %r2, under a guard
    bool to_second;        ///< it writes %r2
    std::uint32_t (*gives)(std::uint32_t a, std::uint32_t b);
};

std::uint32_t choose(std::uint32_t bits, std::uint32_t one, std::uint32_t other) { return (bits & one) | (~bits & other); }

const Case cases[] = {
    {"lop3.b32 %r1, 0x7ffffff0, %r1, %r2, 0xca", false, [](std::uint32_t a, std::uint32_t b) { return choose(selector, a, b); }},
    {"lop3.b32 %r1, 0x7ffffff0, %r2, %r1, 0xca", false, [](std::uint32_t a, std::uint32_t b) { return choose(selector, b, a); }},
    {"lop3.b32 %r2, 0x7ffffff0, %r1, %r2, 0xca", true, [](std::uint32_t a, std::uint32_t b) { return choose(selector, a, b); }},
    {"lop3.b32 %r2, 0x7ffffff0, %r2, %r1, 0xca", true, [](std::uint32_t a, std::uint32_t b) { return choose(selector, b, a); }},
    {"copysign.f32 %r1, %r1, %r2", false, [](std::uint32_t a, std::uint32_t b) { return choose(0x80000000, a, b); }},
    {"copysign.f32 %r1, %r2, %r1", false, [](std::uint32_t a, std::uint32_t b) { return choose(0x80000000, b, a); }},
    {"copysign.f32 %r2, %r1, %r2", true, [](std::uint32_t a, std::uint32_t b) { return choose(0x80000000, a, b); }},
    {"copysign.f32 %r2, %r2, %r1", true, [](std::uint32_t a, std::uint32_t b) { return choose(0x80000000, b, a); }},
    {"bfi.b32 %r1, %r1, %r2, 0, 12", false, [](std::uint32_t a, std::uint32_t b) { return choose(0xfff, a, b); }},
    {"bfi.b32 %r2, %r1, %r2, 0, 12", true, [](std::uint32_t a, std::uint32_t b) { return choose(0xfff, a, b); }},
    {"bfi.b32 %r1, %r2, %r1, 0, 12", false, [](std::uint32_t a, std::uint32_t b) { return choose(0xfff, b, a); }},
};

} // namespace

TEST_CASE("bits of two registers into one of them under a guard", "[kernels]") {
    std::vector<std::uint32_t> numbers;
    for (unsigned i = 0; i < threads; ++i) numbers.push_back(first(i));
    for (unsigned i = 0; i < threads; ++i) numbers.push_back(second(i));
    Array<std::uint32_t> in(numbers);
    for (const Case& c : cases)
        for (const char* values : {"add.u32 %r1, %r4, %r60; xor.b32 %r2, %r5, %r60;", "xor.b32 %r2, %r5, %r60; add.u32 %r1, %r4, %r60;"}) {
            INFO(c.statement);
            Array<std::uint32_t> out(threads);
            run("mul.wide.u32 %l2, %r60, 4; add.u64 %l3, %l2, %l61; add.u64 %l2, %l2, %l60;\n"
                "ld.global.b32 %r4, [%l2]; ld.global.b32 %r5, [%l2+256];" + std::string(values) +
                    "\nand.b32 %r3, %r5, 64; setp.ne.u32 %p1, %r3, 0;\n@%p1 " + c.statement + ";\nst.global.b32 [%l3], " +
                    (c.to_second ? "%r2" : "%r1") + ";",
                {1}, {threads}, {in.address(), out.address()});
            const auto results = out.values();
            unsigned wrong = 0;
            for (unsigned i = 0; i < threads; ++i) {
                const std::uint32_t a = first(i) + i, b = second(i) ^ i;
                wrong += results[i] != ((second(i) & 64) != 0 ? c.gives(a, b) : c.to_second ? b : a);
            }
            CHECK(wrong == 0);
        }
}
