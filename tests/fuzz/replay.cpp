// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target over files and folders without libFuzzer: seeds and minimal reproducers,
// everywhere.
#include "tests/fuzz/text_target.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace {

unsigned run(const std::filesystem::path& path) {
    unsigned count = 0;
    if (std::filesystem::is_directory(path)) {
        for (const auto& entry : std::filesystem::directory_iterator(path))
            count += run(entry.path());
        return count;
    }
    std::ifstream in(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(in),
                                  std::istreambuf_iterator<char>()};
    std::printf("%s\n", path.c_str()); // the last one is the culprit
    std::fflush(stdout);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    return 1;
}

} // namespace

int main(int argc, char** argv) {
    unsigned count = 0;
    for (int i = 1; i < argc; ++i) count += run(argv[i]);
    std::printf("%u inputs\n", count);
    return count == 0; // no seeds is a mistake of the caller
}
