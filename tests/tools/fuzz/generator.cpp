// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/fuzz/generator.h"

#include "tests/tools/fuzz/builder.h"

#include <iterator>

namespace fuzz {

Generator::Generator(Flavour flavour, Version version, Target target, const std::string& forms)
    : flavour_(flavour), version_(version), target_(target), rows_(version, target, forms) {}

Program Generator::generate(std::uint32_t seed, const std::set<unsigned>& without) const {
    Program program = Builder(seed, flavour_, rows_, version_, target_, without).run();
    program.seed = seed;
    return program;
}

std::vector<std::uint64_t> input_words(std::size_t bytes, std::uint64_t seed) {
    static constexpr std::uint64_t edges[] = {
        0, 1, 0x7ff0000000000000, 0xfff8123400000000, 0x000fffffffffffff, 0x8000000000000000, 0x7fffffffffffffff, ~0ull,
        0x3ff00000bf800000, 0x7f80000080000000, 0x7fc12345ff800000, 0x007fffff00800000, 0x3c00bc007c00fc00, 0x7e0103ff7bff8001,
        0x0000000500000003, 0x4330000041e00000};
    Random random(seed);
    std::vector<std::uint64_t> words(bytes / 8);
    for (std::size_t i = 0; i < words.size(); ++i) {
        words[i] = i % 2 ? edges[random.below(std::size(edges))] : random.bits();
        if (i % 2 && random.below(4) == 0) words[i] ^= random.bits() & 7;
    }
    return words;
}

} // namespace fuzz
