// SPDX-License-Identifier: Apache-2.0
// Compares the kernels of generator.cpp with what an H200 gave, or records it, a hash per seed:
//   random_divergence LIBCUDA --record COUNT [FROM] > part; random_divergence LIBCUDA RECORDING [FROM COUNT]
//   random_divergence - --print SEED
#include "tests/recordings/divergence/generator.h"
#include "tests/recordings/driver.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <vector>

namespace {

using divergence::Program;
constexpr unsigned programs_per_module = 16;

class Runner {
public:
    explicit Runner(const char* library) : driver_(library), out_(driver_.allocate(8 * divergence::most_threads)) {}

    /// `wants_all`: also those whose result on a GPU is not what the manual says.
    template <class Visit> void run(unsigned from, unsigned end, bool wants_all, Visit visit) {
        for (unsigned first = from; first < end; first += programs_per_module) {
            std::vector<Program> programs;
            std::string text = divergence::program_head;
            for (unsigned seed = first; seed < std::min(first + programs_per_module, end); ++seed) {
                programs.push_back(divergence::generate(seed));
                text += programs.back().text;
            }
            void* module = driver_.load(text);
            for (unsigned i = 0; i < programs.size(); ++i)
                if (!programs[i].reduces_in_arms || wants_all) visit(first + i, hash(module, programs[i], first + i));
            driver_.unload(module);
        }
    }

private:
    std::uint64_t hash(void* module, const Program& program, unsigned seed) {
        std::vector<std::uint32_t> words(2 * divergence::most_threads);
        driver_.upload(out_, words.data(), words.size() * 4);
        void* parameters[] = {&out_};
        driver_.launch(module, "k" + std::to_string(seed), program.grid, program.block, 1, parameters);
        driver_.download(words.data(), out_, words.size() * 4);
        return recordings::hash_bytes(words.data(), words.size() * 4);
    }

    recordings::Driver driver_;
    recordings::Address out_;
};

int compare(const char* library, const char* path, unsigned from, unsigned count) {
    std::ifstream file(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);)
        if (!line.empty() && line[0] != '#') lines.push_back(line);
    if (from >= lines.size()) throw std::runtime_error(std::string("nothing recorded in ") + path);
    const unsigned end = unsigned(std::min<std::size_t>(lines.size(), std::size_t(from) + count));
    unsigned failed = 0, compared = 0;
    Runner(library).run(from, end, false, [&](unsigned seed, std::uint64_t hash) {
        if (lines[seed] == "-") return; // not recorded
        ++compared;
        if (hash == std::stoull(lines[seed], nullptr, 16)) return;
        ++failed;
        std::printf("program %u differs from the recording\n", seed);
    });
    std::printf("%u programs compared, %u differ\n", compared, failed);
    return failed != 0 || compared == 0;
}

} // namespace

int main(int argc, char** argv) {
    const auto number = [&](int index, unsigned fallback) { return argc > index ? unsigned(std::stoul(argv[index])) : fallback; };
    if (argc < 3) {
        std::fprintf(stderr, "usage: %s LIBCUDA RECORDING [FROM COUNT] | --record COUNT [FROM] | --print SEED\n", argv[0]);
        return 2;
    }
    try {
        if (std::strcmp(argv[2], "--print") == 0) {
            std::printf("%s%s", divergence::program_head, divergence::generate(number(3, 0)).text.c_str());
            return 0;
        }
        if (std::strcmp(argv[2], "--record") != 0) return compare(argv[1], argv[2], number(3, 0), number(4, ~0u));
        Runner(argv[1]).run(number(4, 0), number(4, 0) + number(3, 0), true, [](unsigned, std::uint64_t hash) {
            std::printf("%016llx\n", static_cast<unsigned long long>(hash));
            std::fflush(stdout);
        });
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
