// SPDX-License-Identifier: Apache-2.0
// The registers of the place where a signal came, in a form that outlives the signal's frame.
#pragma once

#include "translator/fault_lanes.h"

#include <ucontext.h>

namespace ptarmigan::runtime {

/// Async-signal-safe.
void save_registers(const ucontext_t& context, translator::MachineState& state);

} // namespace ptarmigan::runtime
