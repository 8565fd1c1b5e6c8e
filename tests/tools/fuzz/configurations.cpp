// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/fuzz/configurations.h"

#include <algorithm>
#include <cstring>
#include <regex>

namespace fuzz {

const std::vector<Configuration>& all_configurations() {
    static const std::vector<Configuration> table{
        {"lanes1", {"PTARMIGAN_LANES=1"}},
        {"default", {}},
        {"lanes32", {"PTARMIGAN_LANES=32"}},
        {"lanes16", {"PTARMIGAN_LANES=16"}},
        {"lanes8", {"PTARMIGAN_LANES=8"}},
        {"lanes4", {"PTARMIGAN_LANES=4"}},
        {"masks", {"PTARMIGAN_DIVERGENCE=masks"}},
        {"counters", {"PTARMIGAN_DIVERGENCE=pcs"}},
        {"counters8", {"PTARMIGAN_DIVERGENCE=pcs", "PTARMIGAN_LANES=8"}},
        {"regions", {"PTARMIGAN_BARRIERS=regions"}},
        {"regions1", {"PTARMIGAN_BARRIERS=regions", "PTARMIGAN_LANES=1"}},
        {"fibers", {"PTARMIGAN_BARRIERS=fibers"}},
        {"turns", {"PTARMIGAN_BARRIERS=turns"}},
        {"turns8", {"PTARMIGAN_BARRIERS=turns", "PTARMIGAN_LANES=8"}},
        {"v3", {"PTARMIGAN_TARGET=x86-64-v3"}},
        {"v3_lanes32", {"PTARMIGAN_TARGET=x86-64-v3", "PTARMIGAN_LANES=32"}},
        {"v4", {"PTARMIGAN_TARGET=x86-64-v4"}},
        {"least", {"PTARMIGAN_OPTIMIZATION=least"}},
        {"least1", {"PTARMIGAN_OPTIMIZATION=least", "PTARMIGAN_LANES=1"}},
        {"quick", {"PTARMIGAN_TIER=quick"}},
        {"swap0", {"PTARMIGAN_TIER=swap:0"}},
        {"swap1", {"PTARMIGAN_TIER=swap:1"}},
        {"schedule1", {"PTARMIGAN_SCHEDULE=random:1"}},
        {"schedule2", {"PTARMIGAN_SCHEDULE=random:2", "PTARMIGAN_LANES=8"}},
        {"waits", {"PTARMIGAN_WAITS=all"}},
        {"check", {"PTARMIGAN_CHECK=memory"}},
        {"late", {"PTARMIGAN_ASYNC=late"}},
    };
    return table;
}

std::vector<Configuration> configurations(const std::string& pattern) {
    const std::regex wanted(pattern);
    std::vector<Configuration> chosen;
    for (const Configuration& c : all_configurations()) {
        const bool needs_avx512 = std::any_of(c.environment.begin(), c.environment.end(), [](const char* v) { return std::strstr(v, "x86-64-v4") != nullptr; });
#if defined(__x86_64__)
        if (needs_avx512 && !__builtin_cpu_supports("avx512vl")) continue;
#else
        if (needs_avx512 || std::strncmp(c.name, "v3", 2) == 0) continue;
#endif
        if (std::regex_match(c.name, wanted)) chosen.push_back(c);
    }
    return chosen;
}

} // namespace fuzz
