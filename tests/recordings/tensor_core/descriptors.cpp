// SPDX-License-Identifier: Apache-2.0
// Where an H100 finds the elements of a matrix that a descriptor names: descriptors_h100.tsv has operand (0: B of 16 columns, 1: A, 2: B of a sparse
// product), whether it is transposed, the descriptor, and a hash of the places of all elements, as 16-bit words of shared memory, line by line; or the
// error. usage: tensor_core_descriptors FOLDER
#include "runtime/tensor_core/shared_matrix.h"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

using ptarmigan::runtime::tensor_core::SharedMatrix;
using ptarmigan::runtime::tensor_core::SharedMemory;

namespace {

/// The block had 200 KB, behind the 1 KB that the system has.
constexpr std::uint32_t memory_bytes = 201 * 1024;

/// The hash, or "error 700".
std::string places(int operand, bool across, std::uint64_t descriptor) {
    const unsigned lines = operand == 1 ? 64 : 16, k = operand == 2 ? 32 : 16;
    std::vector<std::uint32_t> found(lines * k, 0);
    for (const unsigned shift : {0u, 16u}) {
        std::vector<std::uint16_t> words(memory_bytes / 2), read(lines * k);
        for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::uint16_t>(i >> shift);
        const SharedMemory memory{reinterpret_cast<const std::uint8_t*>(words.data()), memory_bytes};
        const SharedMatrix matrix(descriptor);
        auto* bytes = reinterpret_cast<std::uint8_t*>(read.data());
        if (!(across ? matrix.read_across(memory, 0, lines, k * 2, bytes) : matrix.read_lines(memory, 0, lines, k * 2, bytes))) return "error 700";
        for (std::size_t i = 0; i < read.size(); ++i) found[i] |= std::uint32_t{read[i]} << shift;
    }
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const std::uint32_t place : found)
        for (int i = 0; i < 4; ++i) hash = (hash ^ (place >> 8 * i & 255)) * 0x100000001b3;
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
    return text;
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 2) return std::fprintf(stderr, "usage: tensor_core_descriptors FOLDER\n"), 2;
    std::ifstream file(std::string(argv[1]) + "/descriptors_h100.tsv");
    int equal = 0, different = 0;
    for (std::string line; std::getline(file, line);) {
        std::istringstream fields(line);
        int operand = 0, across = 0;
        std::uint64_t descriptor = 0;
        std::string expected;
        fields >> operand >> across >> std::hex >> descriptor >> std::ws;
        std::getline(fields, expected);
        if (places(operand, across != 0, descriptor) == expected) {
            ++equal;
            continue;
        }
        ++different;
        std::printf("operand %d across %d %016llx differs\n", operand, across, static_cast<unsigned long long>(descriptor));
    }
    std::printf("%d descriptors equal, %d different\n", equal, different);
    return different != 0 || equal == 0;
}
