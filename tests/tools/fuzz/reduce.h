// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/tools/fuzz/workers.h"

#include <set>
#include <string>

namespace fuzz {

/// Statements that can be left out while `different(program)` stays true.
std::set<unsigned> reduce(const Generator& generator, std::uint32_t seed, const std::function<bool(const Program&)>& different);

/// Which registers of which threads differ, a line for each of the first few threads.
std::string describe_difference(const std::vector<unsigned char>& a, const std::vector<unsigned char>& b, unsigned threads);

/// All registers of all threads, a line for each thread.
std::string describe_memory(const std::vector<unsigned char>& memory, unsigned threads);

/// The same failure, perhaps in other places of the code.
bool alike(const Result& a, const Result& b);

} // namespace fuzz
