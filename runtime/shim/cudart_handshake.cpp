// SPDX-License-Identifier: Apache-2.0
// MD2, HMAC and the record that the CUDA runtime's validity check hashes. Written from the RFCs and
// from the published description of the check (ZLUDA's dark_api); all of the handshake is in this
// file.
#include "runtime/shim/cudart_handshake.h"

#include "runtime/base/env.h"

#include <cstring>
#include <vector>

namespace ptarmigan::shim {
namespace {

using Block = std::array<std::uint8_t, 16>;

// The permutation of RFC 1319, made of the digits of pi.
// clang-format off
constexpr std::uint8_t pi_substitution[256] = {
    0x29, 0x2E, 0x43, 0xC9, 0xA2, 0xD8, 0x7C, 0x01, 0x3D, 0x36, 0x54, 0xA1, 0xEC, 0xF0, 0x06, 0x13,
    0x62, 0xA7, 0x05, 0xF3, 0xC0, 0xC7, 0x73, 0x8C, 0x98, 0x93, 0x2B, 0xD9, 0xBC, 0x4C, 0x82, 0xCA,
    0x1E, 0x9B, 0x57, 0x3C, 0xFD, 0xD4, 0xE0, 0x16, 0x67, 0x42, 0x6F, 0x18, 0x8A, 0x17, 0xE5, 0x12,
    0xBE, 0x4E, 0xC4, 0xD6, 0xDA, 0x9E, 0xDE, 0x49, 0xA0, 0xFB, 0xF5, 0x8E, 0xBB, 0x2F, 0xEE, 0x7A,
    0xA9, 0x68, 0x79, 0x91, 0x15, 0xB2, 0x07, 0x3F, 0x94, 0xC2, 0x10, 0x89, 0x0B, 0x22, 0x5F, 0x21,
    0x80, 0x7F, 0x5D, 0x9A, 0x5A, 0x90, 0x32, 0x27, 0x35, 0x3E, 0xCC, 0xE7, 0xBF, 0xF7, 0x97, 0x03,
    0xFF, 0x19, 0x30, 0xB3, 0x48, 0xA5, 0xB5, 0xD1, 0xD7, 0x5E, 0x92, 0x2A, 0xAC, 0x56, 0xAA, 0xC6,
    0x4F, 0xB8, 0x38, 0xD2, 0x96, 0xA4, 0x7D, 0xB6, 0x76, 0xFC, 0x6B, 0xE2, 0x9C, 0x74, 0x04, 0xF1,
    0x45, 0x9D, 0x70, 0x59, 0x64, 0x71, 0x87, 0x20, 0x86, 0x5B, 0xCF, 0x65, 0xE6, 0x2D, 0xA8, 0x02,
    0x1B, 0x60, 0x25, 0xAD, 0xAE, 0xB0, 0xB9, 0xF6, 0x1C, 0x46, 0x61, 0x69, 0x34, 0x40, 0x7E, 0x0F,
    0x55, 0x47, 0xA3, 0x23, 0xDD, 0x51, 0xAF, 0x3A, 0xC3, 0x5C, 0xF9, 0xCE, 0xBA, 0xC5, 0xEA, 0x26,
    0x2C, 0x53, 0x0D, 0x6E, 0x85, 0x28, 0x84, 0x09, 0xD3, 0xDF, 0xCD, 0xF4, 0x41, 0x81, 0x4D, 0x52,
    0x6A, 0xDC, 0x37, 0xC8, 0x6C, 0xC1, 0xAB, 0xFA, 0x24, 0xE1, 0x7B, 0x08, 0x0C, 0xBD, 0xB1, 0x4A,
    0x78, 0x88, 0x95, 0x8B, 0xE3, 0x63, 0xE8, 0x6D, 0xE9, 0xCB, 0xD5, 0xFE, 0x3B, 0x00, 0x1D, 0x39,
    0xF2, 0xEF, 0xB7, 0x0E, 0x66, 0x58, 0xD0, 0xE4, 0xA6, 0x77, 0x72, 0xF8, 0xEB, 0x75, 0x4B, 0x0A,
    0x31, 0x44, 0x50, 0xB4, 0x8F, 0xED, 0x1F, 0x1A, 0xDB, 0x99, 0x8D, 0x33, 0x9F, 0x11, 0x83, 0x14,
};
// clang-format on

/// One 16-byte block into the 48-byte state (RFC 1319, 3.4).
void mix_block(std::array<std::uint8_t, 48>& state, const std::uint8_t* block) {
    for (unsigned i = 0; i < 16; ++i) {
        state[16 + i] = block[i];
        state[32 + i] = state[i] ^ block[i];
    }
    std::uint8_t t = 0;
    for (unsigned round = 0; round < 18; ++round) {
        for (std::uint8_t& byte : state) t = byte ^= pi_substitution[t];
        t = static_cast<std::uint8_t>(t + round);
    }
}

template <typename T> void append(std::vector<std::uint8_t>& record, const T& value) {
    auto bytes = reinterpret_cast<const std::uint8_t*>(&value);
    record.insert(record.end(), bytes, bytes + sizeof value);
}

constexpr Block handshake_key = {0x14, 0x6A, 0xDD, 0xAE, 0x53, 0xA9, 0xA7, 0x52,
                                 0xAA, 0x08, 0x41, 0x36, 0x0B, 0xF5, 0x5A, 0x9F};

} // namespace

Block md2(std::span<const std::uint8_t> message) {
    std::vector<std::uint8_t> padded(message.begin(), message.end());
    std::size_t padding = 16 - message.size() % 16;
    padded.insert(padded.end(), padding, static_cast<std::uint8_t>(padding));

    std::array<std::uint8_t, 48> state{};
    Block checksum{};
    std::uint8_t last = 0;
    for (std::size_t at = 0; at < padded.size(); at += 16) {
        for (unsigned i = 0; i < 16; ++i) last = checksum[i] ^= pi_substitution[padded[at + i] ^ last];
        mix_block(state, &padded[at]);
    }
    mix_block(state, checksum.data());
    Block digest;
    std::memcpy(digest.data(), state.data(), digest.size());
    return digest;
}

Block hmac_md2(const Block& key, std::span<const std::uint8_t> message) {
    std::vector<std::uint8_t> inner, outer;
    for (std::uint8_t byte : key) {
        inner.push_back(byte ^ 0x36);
        outer.push_back(byte ^ 0x5c);
    }
    inner.insert(inner.end(), message.begin(), message.end());
    Block digest = md2(inner);
    outer.insert(outer.end(), digest.begin(), digest.end());
    return md2(outer);
}

bool handshake_enabled() {
#ifdef PTARMIGAN_CUDART_HANDSHAKE
    return runtime::env_flag(runtime::Env::cudart_handshake);
#else
    return false;
#endif
}

bool answer_handshake(const HandshakeInput& input, std::span<const HandshakeDevice> devices,
                      std::array<std::uint64_t, 2>& answer) {
    // The runtime asks with its version + 0, 1 and 2. Known for CUDA 11.2 to 13; anything else is
    // not guessed.
    if (input.runtime_version < 11020 || input.runtime_version >= 14000 || input.runtime_version % 10 > 2) return false;
    if (input.runtime_version % 10 < 2) {
        answer = {input.runtime_version % 10 == 0 ? 0x3341181C03CB675Cu : 0x1841181C03CB675Cu, 0x8ED383AA1F4CD1E8u};
        return true;
    }
    std::vector<std::uint8_t> record;
    append(record, input.driver_version);
    append(record, input.runtime_version);
    append(record, input.process);
    append(record, input.thread);
    append(record, input.cudart_table);
    append(record, input.check_table);
    append(record, input.check_function);
    append(record, input.unix_seconds);
    for (const HandshakeDevice& device : devices) {
        append(record, device.uuid);
        append(record, device.pci_domain);
        append(record, device.pci_bus);
        append(record, device.pci_device);
    }
    Block digest = hmac_md2(handshake_key, record);
    std::memcpy(answer.data(), digest.data(), digest.size());
    return true;
}

} // namespace ptarmigan::shim
