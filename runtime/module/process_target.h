// SPDX-License-Identifier: Apache-2.0
// The CPU that this process compiles kernels for.
#pragma once

#include "translator/compile.h"

namespace ptarmigan::runtime {

/// What PTARMIGAN_TARGET names, or the host if it names nothing or what this CPU can't run (said
/// once in the log).
translator::TargetCpu process_target();

} // namespace ptarmigan::runtime
