// SPDX-License-Identifier: Apache-2.0
// Compares the kernels of generator.cpp with what an H200 gave, or records it, a hash per seed:
//   random_divergence LIBCUDA --record COUNT [FROM] > part; random_divergence LIBCUDA RECORDING [FROM COUNT]
//   random_divergence - --print SEED
#include "tests/recordings/divergence/generator.h"
#include "tests/recordings/driver.h"
#include "tests/recordings/seeded_recorder.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace {

using divergence::Program;
constexpr unsigned programs_per_module = 16;

class Runner {
public:
    explicit Runner(const char* library) : driver_(library), out_(driver_.allocate(8 * divergence::most_threads)) {}

    /// `is_recording`: also those whose result on a GPU is not what the manual says.
    template <class Visit> void run(unsigned from, unsigned end, bool is_recording, Visit visit) {
        for (unsigned first = from; first < end; first += programs_per_module) {
            std::vector<Program> programs;
            std::string text = divergence::program_head;
            for (unsigned seed = first; seed < std::min(first + programs_per_module, end); ++seed) {
                programs.push_back(divergence::generate(seed));
                text += programs.back().text;
            }
            void* module = driver_.load(text);
            for (unsigned i = 0; i < programs.size(); ++i)
                if (!programs[i].reduces_in_arms || is_recording) visit(first + i, hash(module, programs[i], first + i));
            driver_.unload(module);
        }
    }

private:
    std::string hash(void* module, const Program& program, unsigned seed) {
        std::vector<std::uint32_t> words(2 * divergence::most_threads);
        driver_.upload(out_, words.data(), words.size() * 4);
        void* parameters[] = {&out_};
        driver_.launch(module, "k" + std::to_string(seed), program.grid, program.block, 1, parameters);
        driver_.download(words.data(), out_, words.size() * 4);
        char text[20];
        std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(recordings::hash_bytes(words.data(), words.size() * 4)));
        return text;
    }

    recordings::Driver driver_;
    recordings::Address out_;
};

} // namespace

int main(int argc, char** argv) {
    return recordings::seeded_recorder<Runner>(argc, argv, [](unsigned seed) { return divergence::program_head + divergence::generate(seed).text; });
}
