// SPDX-License-Identifier: Apache-2.0
#include "tools/ptarmigan/argument.h"

#include "tools/ptarmigan/commands.h"
#include "tools/ptarmigan/dimensions.h"

#include <CLI/CLI.hpp>
#include <catch2/catch.hpp>

#include <cstring>
#include <stdexcept>

using namespace ptarmigan::tool;

// The tool's main.cpp has the real one.
bool ptarmigan::tool::read_file(const std::string& path, std::string& contents) {
    contents = "12345678";
    return path == "eight";
}

namespace {

std::uint64_t bits(const std::string& spec) {
    Argument argument = parse_argument(spec);
    std::uint64_t value = 0;
    std::memcpy(&value, argument.bytes.data(), argument.bytes.size());
    return value;
}

std::string element(const std::string& spec, std::size_t index) {
    Argument argument = parse_argument(spec);
    return format_element(argument.type, argument.bytes.data() + index * argument.type.size);
}

} // namespace

TEST_CASE("argument: plain values") {
    CHECK(bits("u32:7") == 7);
    CHECK(bits("s32:-1") == 0xffffffff);
    CHECK(bits("u8:255") == 255);
    CHECK(bits("s8:-128") == 0x80);
    CHECK(bits("b64:0xffffffffffffffff") == ~0ull);
    CHECK(bits("f32:1.5") == 0x3fc00000);
    CHECK(bits("f64:-2") == 0xc000000000000000);
}

TEST_CASE("argument: 16-bit floats round to nearest even and overflow to infinity") {
    CHECK(bits("f16:1") == 0x3c00);
    CHECK(bits("f16:65504") == 0x7bff);
    CHECK(bits("f16:65519.996") == 0x7bff);
    CHECK(bits("f16:65520") == 0x7c00);
    CHECK(bits("f16:5.960464477539063e-08") == 0x0001);
    CHECK(bits("f16:2.98e-08") == 0x0000);
    CHECK(bits("f16:6.103515625e-05") == 0x0400);
    CHECK(bits("f16:2049") == bits("f16:2048"));
    CHECK(bits("f16:2051") == bits("f16:2052"));
    CHECK(bits("f16:-0") == 0x8000);
    CHECK(bits("f16:inf") == 0x7c00);
    CHECK(bits("f16:nan") == 0x7e00);
    CHECK(bits("bf16:1") == 0x3f80);
    CHECK(bits("bf16:3.1415927") == 0x4049);
    CHECK(element("f16:1.5", 0) == "1.5");
    CHECK(element("bf16:-2", 0) == "-2");
}

TEST_CASE("argument: every half comes back from its text") {
    for (unsigned half = 0; half < 0x7c00; ++half) {
        std::uint8_t bytes[2] = {static_cast<std::uint8_t>(half),
                                 static_cast<std::uint8_t>(half >> 8)};
        std::string text = format_element({'f', 2}, bytes);
        if (bits("f16:" + text) != half) {
            INFO(half << " as " << text);
            CHECK(false);
        }
    }
}

TEST_CASE("argument: buffers") {
    Argument buffer = parse_argument("buf:u32[4]=iota");
    CHECK(buffer.is_buffer);
    CHECK(buffer.count == 4);
    CHECK(buffer.bytes.size() == 16);
    CHECK(element("buf:u32[4]=iota", 3) == "3");
    CHECK(element("buf:f32[4]=const:2.5", 1) == "2.5");
    CHECK(element("buf:s16[2]=const:-3", 1) == "-3");
    CHECK(element("buf:b16[2]=zero", 1) == "0x0000");
    CHECK(element("buf:u8[8]=file:eight", 7) == "56");
    CHECK(element("buf:f32[100]=random:1", 5) == element("buf:f32[100]=random:1", 5));
    CHECK(element("buf:f32[100]=random:1", 5) != element("buf:f32[100]=random:2", 5));
}

TEST_CASE("argument: what is wrong is said") {
    for (const char* spec : {"",
                             "7",
                             "u32",
                             "u32:",
                             "u32:x",
                             "u32:-1",
                             "u8:256",
                             "s8:128",
                             "s8:-129",
                             "u64:99999999999999999999",
                             "q32:1",
                             "f32:",
                             "f32:1.5x",
                             "buf:u32[4]",
                             "buf:u32=zero",
                             "buf:u32[]=zero",
                             "buf:u32[0]=zero",
                             "buf:u32[99999999999999]=zero",
                             "buf:u32[4]=what",
                             "buf:u8[9]=file:eight",
                             "buf:u8[1]=file:none"}) {
        INFO(spec);
        CHECK_THROWS_AS(parse_argument(spec), std::invalid_argument);
    }
}

TEST_CASE("dimensions: one to three numbers") {
    using Dimensions = std::array<std::uint32_t, 3>;
    CHECK(parse_dimensions("7", "--grid") == Dimensions{7, 1, 1});
    CHECK(parse_dimensions("7,8", "--grid") == Dimensions{7, 8, 1});
    CHECK(parse_dimensions("7,8,9", "--grid") == Dimensions{7, 8, 9});
    for (const char* text : {"", "x", "1,", "1,2,3,4", "-1", "1x2"})
        CHECK_THROWS_AS(parse_dimensions(text, "--grid"), CLI::ValidationError);
}
