// SPDX-License-Identifier: Apache-2.0
// Masks on which instruction selection for AVX-512 fails or goes in circles (translator/llvm: part_masks_and_integers.h,
// add_masks_by_choice.h). A circle ends with the test's time limit.
#include "ir_fixture.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

using namespace ptarmigan;

namespace {

void compiles(const std::string& body) {
    INFO(body);
    for (const char* target : {"x86-64-v4", "sapphirerapids"})
        CHECK_THAT(translator::assembly_of_ir(body, target), Catch::Contains("ret"));
}

/// "type 0, type 1, ..."
std::string counted(const std::string& type, unsigned count) {
    std::string text;
    for (unsigned i = 0; i < count; ++i) text += (i ? ", " : "") + type + " " + std::to_string(i);
    return text;
}

std::string store_mask(unsigned lanes, const char* mask, unsigned place) {
    return fmt::format("%w{2} = zext <{0} x i1> {1} to <{0} x i8>\n%p{2} = getelementptr i8, ptr %p, i64 {3}\n"
                       "store <{0} x i8> %w{2}, ptr %p{2}\n",
                       lanes, mask, place, place * 64);
}

/// Random logic of three masks that come from integers and one that does not, all of which are stored, too.
std::string random_logic(std::mt19937& random, unsigned lanes) {
    const auto below = [&](std::size_t end) { return std::size_t(random() % end); };
    const bool integers = below(4) == 0;
    const std::string mask = fmt::format("<{} x i1>", lanes), type = integers ? fmt::format("i{}", lanes) : mask;
    const std::string ones = integers ? "-1" : "splat (i1 true)", zeros = integers ? "0" : "zeroinitializer";
    std::string ir = fmt::format("define void @f(i{0} %a, i{0} %b, i{0} %c, <{0} x i32> %d, ptr %p) {{\n", lanes);
    std::vector<std::string> values;
    for (const char* name : {"a", "b", "c"}) {
        ir += fmt::format("%m{0} = bitcast i{1} %{0} to {2}\n", name, lanes, mask);
        values.push_back(integers ? fmt::format("%{}", name) : fmt::format("%m{}", name));
    }
    ir += fmt::format("%md = icmp eq <{} x i32> %d, zeroinitializer\n", lanes);
    if (!integers) values.push_back("%md");
    const std::size_t operations = 2 + below(6);
    for (std::size_t i = 0; i < operations; ++i) {
        // Mostly of what has just been computed, so that trees become deep.
        const std::string x = below(2) ? values.back() : values[below(values.size())], y = values[below(values.size())];
        switch (const auto kind = below(integers ? 5 : 8)) {
        case 0:
        case 1:
        case 2: ir += fmt::format("%t{} = {} {} {}, {}\n", i, kind == 0 ? "and" : kind == 1 ? "or" : "xor", type, x, y); break;
        case 3:
        case 4: ir += fmt::format("%t{} = xor {} {}, {}\n", i, type, y, ones); break;
        case 5: ir += fmt::format("%t{0} = select {1} {2}, {1} {3}, {1} {4}\n", i, type, x, y, zeros); break;
        case 6: ir += fmt::format("%t{0} = select {1} {2}, {1} {4}, {1} {3}\n", i, type, x, y, below(2) ? ones : zeros); break;
        default: ir += fmt::format("%t{0} = select {1} {2}, {1} {3}, {1} {4}\n", i, type, x, y, values[below(values.size())]);
        }
        values.push_back(fmt::format("%t{}", i));
    }
    std::string last = values.back();
    if (integers) {
        ir += fmt::format("%last = bitcast {} {} to {}\n", type, last, mask);
        last = "%last";
    }
    unsigned place = 0;
    ir += store_mask(lanes, last.c_str(), place++);
    for (const char* name : {"%ma", "%mb", "%mc", "%md"})
        if (below(3)) ir += store_mask(lanes, name, place++);
    return ir + "ret void\n}\n";
}

} // namespace

TEST_CASE("masks: their bits as halves") {
    const std::string mask = "%m = icmp ne <16 x i32> %x, zeroinitializer\n%n = icmp sgt <16 x i32> %x, zeroinitializer\n";
    const auto half = [&](const std::string& way) {
        compiles("define half @f(<16 x i32> %x) {\n" + mask + way + "ret half %h\n}\n");
    };
    half("%h = bitcast <16 x i1> %m to half\n");
    half("%b = bitcast <16 x i1> %m to i16\n%h = bitcast i16 %b to half\n");
    half("%a = and <16 x i1> %m, %n\n%h = bitcast <16 x i1> %a to half\n");
    half("%a = bitcast <16 x i1> %m to i16\n%b = bitcast <16 x i1> %n to i16\n%c = or i16 %a, %b\n%h = bitcast i16 %c to half\n");
    half("%l = shufflevector <16 x i1> %m, <16 x i1> %n, <32 x i32> <" + counted("i32", 32) + ">\n"
         "%v = bitcast <32 x i1> %l to <2 x half>\n%h = extractelement <2 x half> %v, i64 1\n");
    half("%b = bitcast <16 x i1> %m to i16\n%v = insertelement <16 x i16> zeroinitializer, i16 %b, i64 3\n"
         "%w = bitcast <16 x i16> %v to <16 x half>\n%h = extractelement <16 x half> %w, i64 3\n");
}

TEST_CASE("masks: bits of halves as masks") {
    for (const char* way : {"%m = bitcast half %h to <16 x i1>\n", "%b = bitcast half %h to i16\n%m = bitcast i16 %b to <16 x i1>\n"})
        compiles(std::string("define void @f(half %h, ptr %p) {\n") + way + store_mask(16, "%m", 0) + "ret void\n}\n");
}

TEST_CASE("masks: or and xor of integers' bits that are used as masks, too") {
    for (const unsigned lanes : {2u, 4u, 8u, 16u, 32u, 64u})
        for (const char* operation : {"or", "xor"})
            for (const bool masks : {true, false})
                for (const char* also : {"", "xor"}) {
                    std::string ir = fmt::format("define void @f(i{0} %a, i{0} %b, i{0} %c, ptr %p) {{\n%m = bitcast i{0} %a to <{0} x i1>\n"
                                                 "%n = bitcast i{0} %b to <{0} x i1>\n%k = bitcast i{0} %c to <{0} x i1>\n",
                                                 lanes);
                    ir += masks ? fmt::format("%o = {1} <{0} x i1> %m, %n\n", lanes, operation)
                                : fmt::format("%i = {1} i{0} %a, %b\n%o = bitcast i{0} %i to <{0} x i1>\n", lanes, operation);
                    if (*also) ir += fmt::format("%l = {1} <{0} x i1> %o, %k\n", lanes, also) + store_mask(lanes, "%l", 0);
                    ir += store_mask(lanes, "%m", 1) + store_mask(lanes, "%n", 2) + store_mask(lanes, "%k", 3) + store_mask(lanes, "%o", 4);
                    compiles(ir + "ret void\n}\n");
                }
}

TEST_CASE("masks: logic that becomes or of integers' bits while code is generated") {
    for (const unsigned lanes : {8u, 16u, 32u})
        for (const char* logic : {"%n = xor {0} %mb, {1}\n%s = select {0} %n, {0} %ma, {0} zeroinitializer\n%o = xor {0} %s, %mb\n",
                                  "%n = and {0} %md, %ma\n%s = and {0} %md, %mb\n%o = or {0} %n, %s\n",
                                  "%o = select {0} %ma, {0} {1}, {0} %mb\n"}) {
            const std::string mask = fmt::format("<{} x i1>", lanes);
            compiles(fmt::format("define void @f(i{0} %a, i{0} %b, <{0} x i32> %d, ptr %p) {{\n%ma = bitcast i{0} %a to {1}\n"
                                 "%mb = bitcast i{0} %b to {1}\n%md = icmp eq <{0} x i32> %d, zeroinitializer\n",
                                 lanes, mask) +
                     fmt::format(fmt::runtime(logic), mask, "splat (i1 true)") + store_mask(lanes, "%ma", 0) + store_mask(lanes, "%mb", 1) +
                     store_mask(lanes, "%o", 2) + "ret void\n}\n");
        }
}

// RANDOM_MASKS=BEGIN:END other programs than ctest's.
TEST_CASE("masks: random logic") {
    unsigned seed = 0, end = 150;
    if (const char* range = std::getenv("RANDOM_MASKS")) REQUIRE(std::sscanf(range, "%u:%u", &seed, &end) == 2);
    for (; seed < end; ++seed) {
        std::mt19937 random(seed);
        const std::string ir = random_logic(random, 8u << seed % 3);
        INFO("seed " << seed);
        compiles(ir);
    }
}

TEST_CASE("masks: sums with some that are known to be zero in part") {
    const std::string wider = " = shufflevector <8 x i64> {}, <8 x i64> zeroinitializer, <16 x i32> <" + counted("i32", 16) + ">\n";
    const std::string widest = ", <16 x i64> zeroinitializer, <32 x i32> <" + counted("i32", 32) + ">\n";
    // The third word of a difference: the borrows of the first two.
    const std::string borrow = "%a" + fmt::format(fmt::runtime(wider), "%x") + "%b = shufflevector <16 x i64> %a" + widest +        //
                               "%c" + fmt::format(fmt::runtime(wider), "%z") + "%d = shufflevector <16 x i64> %c" + widest +        //
                               "%n = sub <32 x i64> zeroinitializer, %b\n%q = icmp ne <32 x i64> %d, zeroinitializer\n"
                               "%w = zext <32 x i1> %q to <32 x i64>\n%r = icmp ne <32 x i64> %b, zeroinitializer\n"
                               "%s = icmp ult <32 x i64> %n, %w\n%o = or <32 x i1> %r, %s\n";
    for (const char* operation : {"add", "sub"})
        for (const char* extension : {"zext", "sext"})
            compiles("define void @f(<8 x i64> %x, <8 x i64> %z, <32 x i64> %y, ptr %p) {\n" + borrow +
                     fmt::format("%e = {} <32 x i1> %o to <32 x i64>\n%t = {} <32 x i64> %y, %e\n", extension, operation) +
                     "store <32 x i64> %t, ptr %p\nret void\n}\n");
}
