// SPDX-License-Identifier: Apache-2.0
// Asks ptxas which statements it takes.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace ptarmigan::test {

struct Verdict {
    bool accepted = false;
    std::string message; ///< ptxas' first complaint
};

/// Verdicts on `statements`, each for itself, at one version and target. Many go into one run:
/// those that ptxas names are taken out until the rest assembles. An error sometimes sticks to statements
/// that follow, so refused ones that are `doubtful` are asked about again, alone.
/// `folder` takes temporary files. Throws std::runtime_error if ptxas can't be run.
std::vector<Verdict> ask_ptxas(const std::string& ptxas, const std::string& folder,
                               const std::string& version, const std::string& target,
                               const std::vector<std::string>& statements,
                               const std::function<bool(const std::string&)>& doubtful);

} // namespace ptarmigan::test
