// SPDX-License-Identifier: Apache-2.0
// Floating-point operations of operands that the compiler knows, against the same ones of operands that it does not:
// what LLVM's passes compute themselves has other NaNs, and no value at all where the CPU's answer is not asked for.
// Sines and cosines of constants are ptxas' (tests/recordings, constants).
#include "statement_runner.h"

#include <catch2/catch.hpp>

#include <cstdio>

using namespace ptarmigan::test;
using u64 = std::uint64_t;

namespace {

struct Operation {
    std::string text; ///< of %d, %a, %b, %c
    unsigned d, a, operands;
    bool of_integers = false;
};

const std::vector<u64>& special_values(unsigned bits, unsigned operands) {
    static const std::vector<u64> doubles = {0, 0x8000000000000000, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000001, 0xfff8123400000000, 0x7ff0000000000002,
                                             0x3ff0000000000000, 0xc3e8000000000000, 1, 0x7fefffffffffffff},
                                  floats = {0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00001, 0xffc12340, 0x7f800002, 0x3f800000, 0xdf400000, 1, 0x7f7fffff},
                                  halves = {0, 0x8000, 0x7c00, 0xfc00, 0x7e01, 0xfe40, 0x7f80, 0xff80, 0x3c00, 0xbf80, 1, 0x7bff};
    static const std::vector<u64> few_doubles(doubles.begin(), doubles.begin() + 8), few_floats(floats.begin(), floats.begin() + 8), few_halves(halves.begin(), halves.begin() + 8);
    if (operands == 3) return bits == 64 ? few_doubles : bits == 32 ? few_floats : few_halves;
    return bits == 64 ? doubles : bits == 32 ? floats : halves;
}

/// Numbers that are also places in a word, lengths and shifts.
const std::vector<u64>& integers(unsigned bits) {
    static const std::vector<u64> words = {0, 1, 5, 31, 32, 40, 0x80000003, 0xdeadbeef}, long_words = {0, 1, 7, 33, 63, 64, 0x8000000000000103, 0x0123456789abcdef};
    return bits == 64 ? long_words : words;
}

std::vector<Operands> crossed(const Operation& operation) {
    const std::vector<u64>& values = operation.of_integers ? integers(operation.a) : special_values(operation.a, operation.operands);
    std::vector<Operands> all;
    for (u64 a : values)
        for (u64 b : operation.operands > 1 ? values : std::vector<u64>{0})
            for (u64 c : operation.operands > 2 ? values : std::vector<u64>{0}) all.push_back({a, b, c});
    return all;
}

/// How the operands become known: to the front end already, when memory has become registers, or to LLVM only, from a
/// store before the load (of the same type, of two words, or of what is known early: itself, its words, its pieces of 16
/// bits), early (what is x - x?) or late (by the bits of a number that may be set).
enum class Way { constants, memory, stored, stored_words, stored_early, stored_early_words, stored_early_pair, stored_early_pieces, early, late };

bool is_stored(Way way) {
    return way >= Way::stored && way <= Way::stored_early_pieces;
}

bool is_early(Way way) {
    return way >= Way::stored_early && way <= Way::early;
}

std::string hexadecimal(u64 number) {
    char digits[24];
    std::snprintf(digits, sizeof digits, "0x%llx", static_cast<unsigned long long>(number));
    return digits;
}

/// Makes %x<k> the number.
std::string operand(Way way, const std::string& bits, unsigned k, u64 number) {
    const std::string x = "%x" + std::to_string(k), in_frame = "[m+" + std::to_string(8 * k) + "]", shared = "[s+" + std::to_string(8 * k) + "]";
    const std::string constant = "mov.b" + bits + " " + x + ", " + hexadecimal(number) + "; ", load = "ld.shared.b" + bits + " " + x + ", " + shared + "; ";
    const std::string sum = "xor.b" + bits + " " + x + ", %zero, " + hexadecimal(number) + "; ";
    switch (way) {
    case Way::constants: return constant;
    case Way::memory: return constant + "st.local.b" + bits + " " + in_frame + ", " + x + "; ld.local.b" + bits + " " + x + ", " + in_frame + "; ";
    case Way::stored: return "st.shared.b" + bits + " " + shared + ", " + hexadecimal(number) + "; " + load;
    case Way::stored_early: return sum + "st.shared.b" + bits + " " + shared + ", " + x + "; " + load;
    case Way::stored_words: {
        const std::string words = "{%l" + std::to_string(k) + ", %h" + std::to_string(k) + "}";
        return "st.shared.v2.b32 " + shared + ", {" + hexadecimal(number & 0xffffffff) + ", " + hexadecimal(number >> 32) + "}; ld.shared.v2.b32 " + words + ", " + shared + "; mov.b64 " + x + ", " + words + "; ";
    }
    case Way::stored_early_words:
    case Way::stored_early_pair: {
        const std::string l = "%l" + std::to_string(k), h = "%h" + std::to_string(k), above = "[s+" + std::to_string(8 * k + 4) + "]";
        const std::string sums = "xor.b32 " + l + ", %w0, " + hexadecimal(number & 0xffffffff) + "; xor.b32 " + h + ", %w0, " + hexadecimal(number >> 32) + "; ";
        const bool pair = way == Way::stored_early_pair;
        return sums + (pair ? "st.shared.v2.b32 " + shared + ", {" + l + ", " + h + "}; " : "st.shared.b32 " + shared + ", " + l + "; st.shared.b32 " + above + ", " + h + "; ") + load;
    }
    case Way::stored_early_pieces: {
        std::string sums, pieces;
        for (unsigned piece = 0; piece < 4; ++piece) {
            const std::string q = "%q" + std::to_string(4 * k + piece);
            sums += "xor.b16 " + q + ", %zero16, " + hexadecimal(number >> 16 * piece & 0xffff) + "; ";
            pieces += (piece ? ", " : "") + q;
        }
        return sums + "st.shared.v4.b16 " + shared + ", {" + pieces + "}; " + load;
    }
    default: return sum;
    }
}

/// A kernel whose thread i does the operation on the i-th operands, all of them written out.
std::string written_out(const Operation& operation, const std::vector<Operands>& all, Way way) {
    const std::string bits = std::to_string(operation.a);
    std::string text = "{ .reg .b" + bits + " %x<3>, %zero; .reg .b" + std::to_string(operation.d) + " %y; .local .align 8 .b8 m[24]; .shared .align 8 .b8 s[24]; .reg .b32 %l<3>, %h<3>; .reg .b16 %q<12>, %zero16; ";
    text += is_early(way) ? "sub.u32 %w0, %a, %a; " : "and.b32 %w0, %a, 3; shr.u32 %w0, %w0, 2; ";
    text += (bits == "32" ? std::string("mov.b32 %zero, %w0; ") : "cvt.u" + bits + ".u32 %zero, %w0; ") + "cvt.u16.u32 %zero16, %w0; ";
    for (std::size_t i = 0; i < all.size(); ++i) {
        for (unsigned k = 0; k < operation.operands; ++k) text += operand(way, bits, k, all[i][k]);
        std::string statement = operation.text;
        for (std::size_t at = 0; (at = statement.find('%', at)) != std::string::npos; ++at)
            statement.replace(at, 2, statement[at + 1] == 'd' ? "%y" : "%x" + std::to_string(statement[at + 1] - 'a'));
        text += statement + " setp.eq.u32 %p, %a, " + std::to_string(i) + "; @%p mov.b" + std::to_string(operation.d) + " %d, %y; ";
    }
    return text + "}";
}

bool is_part(Way way) {
    return way >= Way::stored_early_words && way <= Way::stored_early_pieces;
}

/// What is seen of a store does not depend on the operation, so few have its many statements.
bool has_parts(const Operation& operation) {
    return operation.text.starts_with("add.rn") || operation.text.starts_with("div.rn");
}

bool rounds_to_nearest(const Operation& operation) {
    for (const char* other : {".rz.", ".rm.", ".rp."})
        if (operation.text.find(other) != std::string::npos) return false;
    return true;
}

void check(const Operation& operation) {
    const std::vector<Operands> all = crossed(operation);
    const unsigned b = operation.operands > 1 ? operation.a : 0, c = operation.operands > 2 ? operation.a : 0;
    const std::vector<u64> expected = run_statement({operation.text, operation.d, operation.a, b, c}, all, {"host", 1});
    // Not too many statements for one kernel.
    for (std::size_t first = 0; first < all.size(); first += 128) {
        const std::vector<Operands> part(all.begin() + long(first), all.begin() + long(std::min(all.size(), first + 128)));
        std::vector<Operands> numbers;
        for (u64 i = 0; i < part.size(); ++i) numbers.push_back({i, 0, 0});
        for (Way way : {Way::constants, Way::memory, Way::stored, Way::stored_words, Way::stored_early, Way::stored_early_words, Way::stored_early_pair, Way::stored_early_pieces, Way::early, Way::late}) {
            if (operation.of_integers && way != Way::constants) continue; // LLVM's own arithmetic is LLVM's
            if (operation.a != 64 && way != Way::constants && way != Way::late) continue; // NaNs of others are canonical
            if (is_part(way) && !has_parts(operation)) continue;
            if (is_stored(way) && !rounds_to_nearest(operation)) continue; // what is seen of a store does not depend on it
            const Statement statement{written_out(operation, part, way), operation.d, 32};
            for (const Variant& variant : {Variant{"host", 1}, Variant{"host", 0}}) {
                if (operation.a != 64 && variant.lane_width == 0) continue;
                const std::vector<u64> results = run_statement(statement, numbers, variant);
                for (std::size_t i = 0; i < part.size(); ++i) {
                    if (results[i] == expected[first + i]) continue;
                    INFO(operation.text << " way " << int(way) << " width " << variant.lane_width);
                    INFO(std::hex << "a=0x" << part[i][0] << " b=0x" << part[i][1] << " c=0x" << part[i][2]);
                    INFO(std::hex << "got 0x" << results[i] << ", expected 0x" << expected[first + i]);
                    CHECK(results[i] == expected[first + i]);
                }
            }
        }
    }
    CHECK(expected.size() == all.size());
}

} // namespace

TEST_CASE("known operands: double", "[float]") {
    for (const char* rounding : {"rn", "rz", "rm", "rp"}) {
        const std::string r = rounding;
        for (const char* name : {"add.", "sub.", "mul.", "div."}) check({name + r + ".f64 %d, %a, %b;", 64, 64, 2});
        check({"fma." + r + ".f64 %d, %a, %b, %c;", 64, 64, 3});
        for (const char* name : {"rcp.", "sqrt."}) check({name + r + ".f64 %d, %a;", 64, 64, 1});
        check({"cvt." + r + ".f32.f64 %d, %a;", 32, 64, 1});
    }
    for (const char* text : {"min.f64 %d, %a, %b;", "max.f64 %d, %a, %b;", "copysign.f64 %d, %a, %b;"}) check({text, 64, 64, 2});
    for (const char* text : {"neg.f64 %d, %a;", "abs.f64 %d, %a;", "cvt.rni.f64.f64 %d, %a;", "cvt.rpi.f64.f64 %d, %a;", "cvt.sat.f64.f64 %d, %a;", "rcp.approx.ftz.f64 %d, %a;",
                             "rsqrt.approx.f64 %d, %a;", "cvt.rni.s64.f64 %d, %a;", "cvt.rzi.u64.f64 %d, %a;"})
        check({text, 64, 64, 1});
    for (const char* text : {"cvt.rni.s32.f64 %d, %a;", "cvt.rzi.u32.f64 %d, %a;", "cvt.rmi.s16.f64 %d, %a;"}) check({text, 32, 64, 1});
    check({"cvt.rn.f16.f64 %d, %a;", 16, 64, 1});
}

TEST_CASE("known operands: float", "[float]") {
    for (const char* rounding : {"rn", "rz", "rm.ftz", "rp"}) {
        const std::string r = rounding;
        for (const char* name : {"add.", "sub.", "mul.", "div."}) check({name + r + ".f32 %d, %a, %b;", 32, 32, 2});
        check({"fma." + r + ".f32 %d, %a, %b, %c;", 32, 32, 3});
        for (const char* name : {"rcp.", "sqrt."}) check({name + r + ".f32 %d, %a;", 32, 32, 1});
    }
    for (const char* text : {"add.sat.f32 %d, %a, %b;", "mul.ftz.sat.f32 %d, %a, %b;", "div.full.f32 %d, %a, %b;", "div.approx.ftz.f32 %d, %a, %b;", "min.f32 %d, %a, %b;", "max.f32 %d, %a, %b;",
                             "min.NaN.f32 %d, %a, %b;", "max.NaN.xorsign.abs.f32 %d, %a, %b;", "copysign.f32 %d, %a, %b;"})
        check({text, 32, 32, 2});
    for (const char* text : {"neg.f32 %d, %a;", "abs.f32 %d, %a;", "rcp.approx.f32 %d, %a;", "sqrt.approx.f32 %d, %a;", "rsqrt.approx.f32 %d, %a;",
                             "lg2.approx.f32 %d, %a;", "ex2.approx.f32 %d, %a;", "tanh.approx.f32 %d, %a;", "cvt.rni.f32.f32 %d, %a;", "cvt.sat.f32.f32 %d, %a;", "cvt.ftz.f32.f32 %d, %a;",
                             "cvt.rna.tf32.f32 %d, %a;", "cvt.rni.s32.f32 %d, %a;", "cvt.rzi.u32.f32 %d, %a;", "cvt.rpi.ftz.s32.f32 %d, %a;", "cvt.rzi.s8.f32 %d, %a;", "cvt.rzi.u16.f32 %d, %a;"})
        check({text, 32, 32, 1});
    for (const char* text : {"cvt.f64.f32 %d, %a;", "cvt.rni.s64.f32 %d, %a;", "cvt.rzi.u64.f32 %d, %a;"}) check({text, 64, 32, 1});
    for (const char* text : {"cvt.rn.f16.f32 %d, %a;", "cvt.rn.bf16.f32 %d, %a;", "cvt.rz.relu.bf16.f32 %d, %a;", "cvt.rn.satfinite.f16.f32 %d, %a;"}) check({text, 16, 32, 1});
    for (const char* text : {"cvt.rn.f16x2.f32 %d, %a, %b;", "cvt.rn.bf16x2.f32 %d, %a, %b;"}) check({text, 32, 32, 2});
    for (const char* text : {"cvt.rn.satfinite.e4m3x2.f32 %d, %a, %b;", "cvt.rn.satfinite.e5m2x2.f32 %d, %a, %b;"}) check({text, 16, 32, 2});
}

TEST_CASE("known operands: halves", "[float]") {
    for (const char* kind : {"f16", "bf16"}) {
        const std::string type = std::string(".") + kind;
        for (const char* name : {"add.rn", "sub.rn", "mul.rn", "min", "max.NaN"}) check({name + type + " %d, %a, %b;", 16, 16, 2});
        for (const char* name : {"fma.rn", "fma.rn.relu"}) check({name + type + " %d, %a, %b, %c;", 16, 16, 3});
        for (const char* name : {"neg", "abs", "tanh.approx"}) check({name + type + " %d, %a;", 16, 16, 1});
        check({"cvt.f32" + type + " %d, %a;", 32, 16, 1});
        check({"cvt.rzi.s32" + type + " %d, %a;", 32, 16, 1});
        check({"cvt.f64" + type + " %d, %a;", 64, 16, 1});
    }
    check({"add.rn.sat.f16 %d, %a, %b;", 16, 16, 2});
    check({"ex2.approx.f16 %d, %a;", 16, 16, 1});
    check({"cvt.rni.f16.f16 %d, %a;", 16, 16, 1});
}

TEST_CASE("known operands: integers", "[integer]") {
    for (const char* text : {"brev.b32 %d, %a;", "popc.b32 %d, %a;", "clz.b32 %d, %a;"}) check({text, 32, 32, 1, true});
    check({"brev.b64 %d, %a;", 64, 64, 1, true});
    for (const char* text : {"popc.b64 %d, %a;", "clz.b64 %d, %a;"}) check({text, 32, 64, 1, true});
    for (const char* text : {"mul.hi.u32 %d, %a, %b;", "mul.hi.s32 %d, %a, %b;"}) check({text, 32, 32, 2, true});
    for (const char* text : {"mul.hi.u64 %d, %a, %b;", "mul.hi.s64 %d, %a, %b;"}) check({text, 64, 64, 2, true});
    for (const char* text : {"lop3.b32 %d, %a, %b, %c, 0xca;", "lop3.b32 %d, %a, %b, %c, 0x17;", "shf.l.clamp.b32 %d, %a, %b, %c;", "shf.l.wrap.b32 %d, %a, %b, %c;",
                             "shf.r.clamp.b32 %d, %a, %b, %c;", "shf.r.wrap.b32 %d, %a, %b, %c;", "bfe.u32 %d, %a, %b, %c;", "bfe.s32 %d, %a, %b, %c;",
                             "bfi.b32 %d, %a, 0x5a5aa5a5, %b, %c;"})
        check({text, 32, 32, 3, true});
    const std::string field = "{ .reg .b32 position, length; cvt.u32.u64 position, %b; cvt.u32.u64 length, %c; ";
    for (const char* text : {"bfe.u64 %d, %a, position, length; }", "bfe.s64 %d, %a, position, length; }", "bfi.b64 %d, %a, 0x123456789abcdef, position, length; }"})
        check({field + text, 64, 64, 3, true});
}
