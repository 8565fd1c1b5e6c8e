// SPDX-License-Identifier: Apache-2.0
// clusterlaunchcontrol.try_cancel (PTX manual 9.7.13.17): a CTA that runs takes over one that has not started.
#pragma once

#include "translator/kernel_abi.h"

#include <cstdint>

namespace ptarmigan::runtime {

/// The service of kernel_abi.h.
void cancel_launch(abi::CtaContext* cta, std::uint32_t step, std::uint64_t response, std::uint64_t object,
                   std::uint32_t all, std::uint32_t line);

} // namespace ptarmigan::runtime
