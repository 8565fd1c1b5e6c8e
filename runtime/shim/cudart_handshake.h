// SPDX-License-Identifier: Apache-2.0
// The validity check that NVIDIA's CUDA runtime makes of its driver before it works with it. This
// is what makes programs built by stock nvcc (static cudart) run; see "Interoperability" in
// README.md of this folder.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ptarmigan::shim {

/// 16-byte MD2 digest (RFC 1319).
std::array<std::uint8_t, 16> md2(std::span<const std::uint8_t> message);

/// HMAC (RFC 2104) over MD2 with its 16-byte block; `key` of 16 bytes.
std::array<std::uint8_t, 16> hmac_md2(const std::array<std::uint8_t, 16>& key, std::span<const std::uint8_t> message);

/// Per device: what the runtime was told by cuDeviceGetUuid and attributes 50, 33 and 34.
struct HandshakeDevice {
    std::array<std::uint8_t, 16> uuid;
    std::uint32_t pci_domain, pci_bus, pci_device;
};

/// What the answer covers besides the devices.
struct HandshakeInput {
    std::uint32_t driver_version, runtime_version, process, thread;
    std::uint64_t cudart_table, check_table, check_function, unix_seconds;
};

/// True when this build answers (CMake option PTARMIGAN_CUDART_HANDSHAKE) and the environment
/// variable of the same name is not "off".
bool handshake_enabled();

/// The 16 bytes expected for `input`. Returns false for a runtime version whose check is not known.
bool answer_handshake(const HandshakeInput& input, std::span<const HandshakeDevice> devices,
                      std::array<std::uint64_t, 2>& answer);

} // namespace ptarmigan::shim
