// SPDX-License-Identifier: Apache-2.0
// PTARMIGAN_CHECK=memory: what a kernel may access.
#pragma once

#include "translator/kernel_abi.h"

namespace ptarmigan::runtime {

/// Service: ends the kernel with an illegal address, which is that of the first of `lanes` that may not access `bytes`
/// bytes. In reach are allocations of the device and what it was given access to, the host's pinned, registered and
/// managed memory, and of the CTA its shared and local memory, parameters and buffers for launches.
void check_access(abi::CtaContext* cta, std::uint32_t step, const std::uint64_t* addresses, std::uint64_t lanes,
                  std::uint32_t bytes, std::uint32_t is_write, std::uint32_t line);

} // namespace ptarmigan::runtime
