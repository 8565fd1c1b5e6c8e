// SPDX-License-Identifier: Apache-2.0
// The command line of recorders whose cases are made from seeds, with a line of the recording per seed:
//   RECORDER LIBCUDA --record COUNT [FROM] > part; RECORDER LIBCUDA RECORDING [FROM COUNT]; RECORDER - --print SEED
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace recordings {

/// Compares seeds `from` to `from + count` with the recording at `path`; a line `-` has not been recorded. 0 if all agree.
/// `Runner(library).run(from, end, is_recording, visit)` calls visit(seed, line).
template <class Runner> int compare_seeds(const char* library, const char* path, unsigned from, unsigned count) {
    std::ifstream file(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);)
        if (!line.empty() && line[0] != '#') lines.push_back(line);
    if (from >= lines.size()) throw std::runtime_error(std::string("nothing recorded in ") + path);
    const unsigned end = unsigned(std::min<std::size_t>(lines.size(), std::size_t(from) + count));
    unsigned failed = 0, compared = 0;
    Runner(library).run(from, end, false, [&](unsigned seed, const std::string& line) {
        if (lines[seed] == "-") return;
        ++compared;
        if (line == lines[seed]) return;
        ++failed;
        std::printf("program %u: %s, recorded %s\n", seed, line.c_str(), lines[seed].c_str());
    });
    std::printf("%u programs compared, %u differ\n", compared, failed);
    return failed != 0 || compared == 0;
}

/// A recorder's main(). `text_of(seed)`: the program as PTX.
template <class Runner, class TextOf> int seeded_recorder(int argc, char** argv, TextOf text_of) {
    const auto number = [&](int index, unsigned fallback) { return argc > index ? unsigned(std::stoul(argv[index])) : fallback; };
    if (argc < 3) {
        std::fprintf(stderr, "usage: %s LIBCUDA RECORDING [FROM COUNT] | --record COUNT [FROM] | --print SEED\n", argv[0]);
        return 2;
    }
    try {
        if (std::strcmp(argv[2], "--print") == 0) {
            std::fputs(text_of(number(3, 0)).c_str(), stdout);
            return 0;
        }
        if (std::strcmp(argv[2], "--record") != 0) return compare_seeds<Runner>(argv[1], argv[2], number(3, 0), number(4, ~0u));
        Runner(argv[1]).run(number(4, 0), number(4, 0) + number(3, 0), true, [](unsigned, const std::string& line) {
            std::printf("%s\n", line.c_str());
            std::fflush(stdout);
        });
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}

} // namespace recordings
