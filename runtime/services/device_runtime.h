// SPDX-License-Identifier: Apache-2.0
// CUDA's device runtime: the functions that kernels call to launch kernels, copy and ask.
#pragma once

#include "translator/kernel_abi.h"

namespace ptarmigan::runtime {

/// abi::Services::device_runtime.
std::uint64_t device_runtime(abi::CtaContext* cta, std::uint32_t step, std::uint32_t lane, std::uint32_t function,
                             const std::uint64_t* arguments);

} // namespace ptarmigan::runtime
