// SPDX-License-Identifier: Apache-2.0
#include "runtime/shim/cudart_handshake.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <string>

using namespace ptarmigan::shim;

namespace {

std::string hex(const std::array<std::uint8_t, 16>& bytes) {
    std::string text;
    for (std::uint8_t byte : bytes) {
        text += "0123456789abcdef"[byte >> 4];
        text += "0123456789abcdef"[byte & 15];
    }
    return text;
}

std::span<const std::uint8_t> bytes_of(const std::string& text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

} // namespace

TEST_CASE("handshake: MD2 gives the digests of RFC 1319") {
    CHECK(hex(md2(bytes_of(""))) == "8350e5a3e24c153df2275c9f80692773");
    CHECK(hex(md2(bytes_of("a"))) == "32ec01ec4a6dac72c0ab96fb34c0b5d1");
    CHECK(hex(md2(bytes_of("abc"))) == "da853b0d3f88d99b30283a69e6ded6bb");
    CHECK(hex(md2(bytes_of("message digest"))) == "ab4f496bfb2a530b219ff33031fe06b0");
    CHECK(
        hex(md2(bytes_of(
            "12345678901234567890123456789012345678901234567890123456789012345678901234567890"))) ==
        "d5976f79d83d3a0dc9806c3c66f3efd8");
}

TEST_CASE("handshake: HMAC is the digest of the outer key and the inner digest") {
    std::array<std::uint8_t, 16> key{1, 2, 3};
    std::string message = "record", inner(16, '\x36'), outer(16, '\x5c');
    for (int i = 0; i < 3; ++i) {
        inner[i] = static_cast<char>(inner[i] ^ (i + 1));
        outer[i] = static_cast<char>(outer[i] ^ (i + 1));
    }
    auto digest = md2(bytes_of(inner + message));
    outer.append(reinterpret_cast<const char*>(digest.data()), digest.size());
    CHECK(hex(hmac_md2(key, bytes_of(message))) == hex(md2(bytes_of(outer))));
}

TEST_CASE("handshake: known runtime versions are answered, others are not guessed") {
    HandshakeInput input{};
    std::array<std::uint64_t, 2> first{}, second{};
    input.runtime_version = 13000;
    CHECK(answer_handshake(input, {}, first));
    input.runtime_version = 13001;
    CHECK(answer_handshake(input, {}, second));
    CHECK(first != second);
    for (std::uint32_t version : {13003u, 13009u, 10020u, 14000u, 0u}) {
        input.runtime_version = version;
        CHECK_FALSE(answer_handshake(input, {}, first));
    }
}

TEST_CASE("handshake: the third answer depends on every input") {
    HandshakeInput input{13000, 13002, 1, 2, 3, 4, 5, 6};
    HandshakeDevice device{{1, 2, 3}, 0, 6, 0};
    std::array<std::uint64_t, 2> base{}, other{};
    REQUIRE(answer_handshake(input, {&device, 1}, base));
    auto differs = [&](auto change) {
        HandshakeInput changed = input;
        HandshakeDevice changed_device = device;
        change(changed, changed_device);
        REQUIRE(answer_handshake(changed, {&changed_device, 1}, other));
        return other != base;
    };
    CHECK(differs([](auto& i, auto&) { ++i.driver_version; }));
    CHECK(differs([](auto& i, auto&) { ++i.process; }));
    CHECK(differs([](auto& i, auto&) { ++i.thread; }));
    CHECK(differs([](auto& i, auto&) { ++i.cudart_table; }));
    CHECK(differs([](auto& i, auto&) { ++i.check_table; }));
    CHECK(differs([](auto& i, auto&) { ++i.check_function; }));
    CHECK(differs([](auto& i, auto&) { ++i.unix_seconds; }));
    CHECK(differs([](auto&, auto& d) { ++d.uuid[15]; }));
    CHECK(differs([](auto&, auto& d) { ++d.pci_bus; }));
    CHECK_FALSE(differs([](auto&, auto&) {}));
}
