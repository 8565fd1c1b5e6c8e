// SPDX-License-Identifier: Apache-2.0
// Other tools on like jobs, as processes; their start-up is part of the time.
#pragma once

#include <string>
#include <vector>

namespace ptarmigan::bench {

struct Peer {
    std::string what;
    double megabytes = 0;
    double seconds = 0; ///< wall time, the fastest round; 0 where the tool is missing or failed
};

/// ptxas on the text at `kernels` (it has no mode that only validates; -O0 comes nearest), clang 19 reading and
/// verifying the LLVM IR that it makes of `ir_source`, and an empty run of each for scale.
std::vector<Peer> peers(const std::string& kernels, const std::string& ir_source, unsigned rounds);

} // namespace ptarmigan::bench
