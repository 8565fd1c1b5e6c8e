// SPDX-License-Identifier: Apache-2.0
// What a statement of PTX takes to compile, over all kernels of many texts.
#pragma once

#include "translator/compile.h"

#include <string>
#include <vector>

namespace ptarmigan::bench {

struct CorpusRun {
    unsigned kernels = 0, unsupported = 0; ///< compiled; not compiled
    unsigned long statements = 0;          ///< of those compiled, with what they call
    double seconds = 0;                    ///< CPU, of all
    double median = 0, ninth_decile = 0;   ///< milliseconds a statement, of kernels
    double slowest = 0;
    std::string slowest_kernel;
};

/// Compiles every kernel of the .ptx files in `folders` for blocks of 256 threads (or what .reqntid says) in `form`,
/// for this host. Throws std::runtime_error without a translator.
CorpusRun compile_corpus(const std::vector<std::string>& folders, const translator::CompileForm& form);

} // namespace ptarmigan::bench
