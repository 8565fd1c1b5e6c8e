// SPDX-License-Identifier: Apache-2.0
// Ways to run a program that must all give the same.
#pragma once

#include <string>
#include <vector>

namespace fuzz {

struct Configuration {
    const char* name;
    std::vector<const char*> environment; ///< NAME=VALUE
};

/// The first one is run for every program; it is what the others are compared with.
const std::vector<Configuration>& all_configurations();
/// Those whose whole name matches, in their order. Without what this CPU can't run.
std::vector<Configuration> configurations(const std::string& pattern);

} // namespace fuzz
