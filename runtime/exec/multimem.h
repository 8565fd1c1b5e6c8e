// SPDX-License-Identifier: Apache-2.0
// What multimem instructions do to the memory behind a multicast address (PTX manual 9.7.9.14): loads reduce in the
// order in which the devices were added, each element by itself; stores and reductions go to one device's memory after
// the other. No GPU was asked.
#pragma once

#include "translator/kernel_abi.h"

namespace ptarmigan::runtime {

/// Of one step. Faults don't return: an address that is none of multicast memory, or where some device has no memory
/// bound.
void run_multimem(abi::CtaContext& cta, std::uint32_t step, abi::MultimemCall& call);

} // namespace ptarmigan::runtime
