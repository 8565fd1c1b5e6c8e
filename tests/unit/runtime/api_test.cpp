// SPDX-License-Identifier: Apache-2.0
// The public C++ interface, as far as it goes without compiling a kernel.
#include "ptarmigan/ptarmigan.h"

#include <catch2/catch.hpp>

#include <numeric>
#include <vector>

TEST_CASE("api: modules list their kernels and variables, buffers carry bytes") {
    ptarmigan::Module module(
        ".version 8.0\n.target sm_90\n.address_size 64\n"
        ".visible .global .u32 value = 7;\n"
        ".visible .entry first() { ret; }\n.visible .entry second() { ret; }\n");
    CHECK(module.kernels() == std::vector<std::string>{"first", "second"});
    const auto [address, size] = module.variable("value");
    CHECK(size == 4);
    CHECK(*reinterpret_cast<const std::uint32_t *>(address) == 7);
    CHECK_THROWS_AS(module.variable("nothing"), ptarmigan::Error);
    CHECK_THROWS_AS(module.launch("third", {1}, {1}, {}), ptarmigan::Error);
    CHECK_THROWS_AS(module.launch("first", {1}, {1}, {1}), ptarmigan::Error);

    std::vector<int> sent(100), received(100);
    std::iota(sent.begin(), sent.end(), 1);
    ptarmigan::Buffer buffer(400);
    buffer.upload(sent.data(), 400);
    buffer.download(received.data(), 400);
    CHECK(sent == received);
    CHECK_THROWS_AS(buffer.upload(sent.data(), 400, 8), ptarmigan::Error);
}

TEST_CASE("api: bad PTX is an error with its place") {
    try {
        ptarmigan::Module module(".version 8.0\n.target sm_90\n.global .u32 = 3;\n", "bad.ptx");
        FAIL("it loaded");
    } catch (const ptarmigan::Error &error) {
        CHECK(error.code() == 218);
        CHECK(std::string(error.what()).find("bad.ptx:3:") != std::string::npos);
    }
}
