// SPDX-License-Identifier: Apache-2.0
// Masks on which instruction selection for AVX-512 fails or goes in circles (translator/llvm: part_masks_and_integers.h,
// add_masks_by_choice.h). A circle ends with the test's time limit.
#include "ir_fixture.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

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
