// SPDX-License-Identifier: Apache-2.0
// Records in which lines ptxas reports what it refuses: agreement_record_lines PTXAS FOLDER SAMPLE > refusal_lines.txt
// asks about one refused statement in SAMPLE of FOLDER/verdicts.txt, each alone and spread over lines (spread()).
#include "tests/agreement/statements.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>
#include <unistd.h>

using namespace ptarmigan::test;

namespace {

/// The lines that ptxas' errors name, in its order; empty if it takes the text or names none.
std::string lines_of_errors(const std::string& ptxas, const std::string& version, const std::string& target,
                            const std::string& statement) {
    const std::string base = "/tmp/refusal_lines." + std::to_string(getpid());
    std::ofstream(base + ".ptx") << module_header(version, target) << spread(statement, version);
    const int sm = target.starts_with("sm_") ? std::atoi(target.c_str() + 3) : 0;
    const std::string arch = sm < 75 ? "sm_75" : target.substr(0, target.find(','));
    const std::string command =
        "'" + ptxas + "' -O0 -w -arch=" + arch + " " + base + ".ptx -o /dev/null > " + base + ".log 2>&1";
    const int status = std::system(command.c_str());
    std::string found;
    if (status != 0) {
        std::set<std::string> seen;
        std::ifstream log(base + ".log");
        for (std::string line; std::getline(log, line);) {
            const std::size_t at = line.find(", line "), end = line.find("; ");
            if (at == std::string::npos || end == std::string::npos || line.find("; warning") != std::string::npos ||
                line.find("; info") != std::string::npos)
                continue;
            const std::string number = line.substr(at + 7, end - at - 7);
            if (seen.insert(number).second) found += (found.empty() ? "" : ",") + number;
        }
    }
    for (const char* end : {".ptx", ".log"}) std::remove((base + end).c_str());
    return found;
}

} // namespace

int main(int argc, char** argv) {
    const unsigned sample = argc == 4 ? static_cast<unsigned>(std::atoi(argv[3])) : 0;
    std::ifstream in(argc == 4 ? std::string(argv[2]) + "/verdicts.txt" : std::string());
    if (!in || sample == 0) {
        std::cerr << "usage: agreement_record_lines PTXAS FOLDER SAMPLE\n";
        return 2;
    }
    std::string group, shown;
    unsigned number = 0;
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("@ ")) group = line.substr(2);
        if (!line.starts_with("- ") || ++number % sample != 0) continue;
        const std::size_t space = group.find(' ');
        const std::string lines = lines_of_errors(argv[1], group.substr(0, space), group.substr(space + 1), line.substr(2));
        if (lines.empty()) continue;
        if (shown != group) std::cout << "@ " << (shown = group) << '\n';
        std::cout << "- " << lines << ' ' << line.substr(2) << '\n';
    }
    return 0;
}
