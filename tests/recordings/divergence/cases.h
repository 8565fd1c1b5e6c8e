// SPDX-License-Identifier: Apache-2.0
// Small kernels in which the lanes of a warp meet from different places of the code.
#pragma once

#include <string>
#include <vector>

namespace divergence {

/// One kernel. `body` is PTX between a prologue and an epilogue (see text_of): %t is the thread, %l its lane, %w its warp; the
/// threads that reach the end store %d, the others keep 0xffffffff unless they stored something themselves to [%out].
struct Case {
    std::string name, body;
    unsigned threads = 32;
};

const std::vector<Case>& cases();
/// The module with the kernel `k` of a case.
std::string text_of(const Case& which);

} // namespace divergence
