// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/tools/fuzz/generator.h"

#include <functional>

namespace fuzz {

/// Prints every executable form: in how many of the programs it stands, or why none has it. Returns how many forms that a part of the
/// generator makes stand in none, and prints what the front end does not accept.
unsigned print_coverage(const Generator& generator, ptarmigan::ptx::Version version, ptarmigan::ptx::Target target, std::uint32_t from, std::uint32_t to);

} // namespace fuzz
