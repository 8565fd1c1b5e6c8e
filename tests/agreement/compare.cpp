// SPDX-License-Identifier: Apache-2.0
// Lists where the front end and a file of verdicts differ, and both figures: agreement_compare
// VERDICTS For verdicts that are not kept: all statements, other seeds, another ptxas. See
// README.md.
#include "tests/agreement/statements.h"

#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>

using namespace ptarmigan::test;

int main(int argc, char** argv) {
    std::ifstream in(argc == 2 ? argv[1] : "");
    if (!in) {
        std::cerr << "usage: agreement_compare VERDICTS\n";
        return 2;
    }
    std::string version, target;
    unsigned long all[2] = {0, 0}, same[2] = {0, 0};
    bool differs = false;
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("@ ")) {
            const std::size_t space = line.find(' ', 2);
            version = line.substr(2, space - 2);
            target = line.substr(space + 1);
        } else if (line.starts_with("# ")) { // ptxas' message about the statement before
            if (differs) std::cout << "    " << line << '\n';
        } else if (line.starts_with("+ ") || line.starts_with("- ")) {
            const bool expected = line[0] == '+';
            differs = accepted_here(version, target, line.substr(2)) != expected;
            ++all[expected];
            same[expected] += differs ? 0 : 1;
            if (differs)
                std::cout << (expected ? "refused here: " : "accepted here: ") << version << ' '
                          << target << ' ' << line.substr(2) << '\n';
        }
    }
    std::printf(
        "accepted by ptxas: %lu of %lu accepted here (%.3f %%)\nrefused by ptxas: %lu of %lu "
        "refused here (%.3f %%)\n",
        same[1], all[1],
        all[1] == 0 ? 100 : 100.0 * static_cast<double>(same[1]) / static_cast<double>(all[1]),
        same[0], all[0],
        all[0] == 0 ? 100 : 100.0 * static_cast<double>(same[0]) / static_cast<double>(all[0]));
    return 0;
}
