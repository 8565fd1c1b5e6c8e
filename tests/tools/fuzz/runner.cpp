// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/fuzz/runner.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace fuzz {
namespace {

/// What is loaded: the program's text, or code that was made of it, from the file that FUZZ_CODE names, or SEED.cubin in that folder.
std::string code_of(const Program& program) {
    const char* named = std::getenv("FUZZ_CODE");
    if (named == nullptr) return program.text;
    std::filesystem::path path = named;
    if (is_directory(path)) path /= std::to_string(program.seed) + ".cubin";
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("cannot read " + path.string());
    return {std::istreambuf_iterator<char>(file), {}};
}

} // namespace

Runner::Runner(const char* library) : driver_(library) {
    constexpr int stack_size = 0; // CU_LIMIT_STACK_SIZE
    driver_.call<int, std::size_t>("cuCtxSetLimit", stack_size, 16384);
    // Programs find the begin of the input from an address inside.
    in_ = (driver_.allocate(2 * input_bytes) + input_bytes - 1) / input_bytes * input_bytes;
    const std::vector<std::uint64_t> words = input_words(input_bytes, 2026);
    driver_.upload(in_, words.data(), input_bytes);
    memory_ = driver_.allocate(memory_bytes);
}

std::vector<unsigned char> Runner::run(const Program& program) {
    std::vector<unsigned char> memory(memory_bytes);
    void* module = driver_.load(code_of(program));
    driver_.upload(memory_, memory.data(), memory.size());
    recordings::Address scratch = memory_ + max_threads * output_bytes;
    std::vector<std::uint64_t> block = input_words(parameter_bytes, 11);
    void* parameters[] = {&in_, &memory_, &scratch, block.data()};
    driver_.launch(module, "k", program.grid, program.block_x, program.block_y, parameters);
    driver_.call("cuCtxSynchronize");
    driver_.download(memory.data(), memory_, memory.size());
    driver_.unload(module);
    return memory;
}

std::string launch_line(const Program& program) {
    return "// launch: grid " + std::to_string(program.grid) + " block " + std::to_string(program.block_x) + " " + std::to_string(program.block_y) + "\n";
}

Program program_of(std::string text) {
    Program program;
    if (std::sscanf(text.c_str(), "// launch: grid %u block %u %u", &program.grid, &program.block_x, &program.block_y) != 3 || program.threads() > max_threads)
        throw std::runtime_error("the first line must be \"// launch: grid G block X Y\"");
    program.text = std::move(text);
    return program;
}

} // namespace fuzz
