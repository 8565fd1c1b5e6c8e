// SPDX-License-Identifier: Apache-2.0
// Random kernels over integer arithmetic, predicates and control flow that always end: nested loops with uniform and
// divergent bounds, breaks, continues, early returns, guards, barriers.
#pragma once

#include <cstdint>
#include <string>

namespace ptarmigan::test {

/// PTX text of one entry `k(.param .u32 p0..p3, .param .u64 out)`. The same seed gives the same text.
std::string random_program(std::uint32_t seed, bool with_barriers);

} // namespace ptarmigan::test
