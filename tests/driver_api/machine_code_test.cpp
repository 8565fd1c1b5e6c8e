// SPDX-License-Identifier: Apache-2.0
// Machine code beside the PTX that it was made of: atomic operations that ptxas combined for the lanes of a warp, in
// branches narrower than the last collective's mask, pointers to shared memory that went through memory (of which code of
// sm_90 takes the lower half for the shared address), products of doubles, roundings to tf32, uniform predicates, numbers
// of 8 bits, small parameters that are read together, managed variables, and what is linked to libcudadevrt's grid barrier.
// The cubins: ptxas -arch=sm_80 -o NAME.sm_80.cubin NAME.ptx, or for sm_90; ptxas 13.0.
#include "driver.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <elf.h>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <tuple>
#include <vector>

extern "C" CUresult cuLaunchCooperativeKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                              unsigned, CUstream, void**);

namespace {

constexpr unsigned blocks = 4, threads = 256;

CUmodule load(const char* name) {
    CUmodule module = nullptr;
    REQUIRE(cuModuleLoad(&module, (std::string(PTARMIGAN_SOURCE_DIR "/tests/programs/cubin/") + name).c_str()) == 0);
    return module;
}

/// What kernel `name` of two pointers, and parameters behind them, makes of some numbers.
std::vector<std::uint32_t> results(const char* file, const char* name, const std::vector<void*>& others = {}) {
    const CUmodule module = load(file);
    CUfunction kernel = nullptr;
    REQUIRE(cuModuleGetFunction(&kernel, module, name) == 0);
    std::vector<std::uint32_t> words(blocks * threads);
    for (std::uint32_t i = 0; i < words.size(); ++i) words[i] = (i * 2654435761u) >> 11;
    CUdeviceptr in = driver_test::allocate(4 * words.size()), out = driver_test::allocate(4 * words.size());
    REQUIRE(cuMemcpyHtoD_v2(in, words.data(), 4 * words.size()) == 0);
    REQUIRE(cuMemsetD8_v2(out, 0, 4 * words.size()) == 0);
    std::vector<void*> parameters{&in, &out};
    parameters.insert(parameters.end(), others.begin(), others.end());
    REQUIRE(cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, nullptr, parameters.data(), nullptr) == 0);
    REQUIRE(cuCtxSynchronize() == 0);
    REQUIRE(cuMemcpyDtoH_v2(words.data(), out, 4 * words.size()) == 0);
    CHECK(cuMemFree_v2(in) == 0);
    CHECK(cuMemFree_v2(out) == 0);
    CHECK(cuModuleUnload(module) == 0);
    return words;
}

} // namespace

TEST_CASE("machine code: atomic operations that ptxas combined") {
    driver_test::context();
    for (const char* kernel : {"narrower_branches", "behind_votes"}) {
        const std::vector<std::uint32_t> expected = results("combined_atomics.ptx", kernel);
        for (const char* file : {"combined_atomics.sm_80.cubin", "combined_atomics.sm_90.cubin"}) {
            CAPTURE(kernel, file);
            CHECK(results(file, kernel) == expected);
        }
    }
}

TEST_CASE("machine code: products of doubles of all shapes, roundings to tf32, numbers of 8 bits, bf16 and integers, products with a scale, barriers of a counted number of threads, vectors in one atomic operation, packed integers") {
    driver_test::context();
    for (const char* kernel : {"doubles_k4", "doubles_k8", "doubles_k16", "negated_doubles", "round_to_tf32", "bytes", "bfloat_integers", "packed_and_scaled", "counted_barriers", "vector_atomics", "packed_integers", "turned_halves"}) {
        CAPTURE(kernel);
        const std::vector<std::uint32_t> expected = results("hopper_forms.ptx", kernel);
        CHECK(std::set<std::uint32_t>(expected.begin(), expected.end()).size() > 500);
        CHECK(results("hopper_forms.sm_90.cubin", kernel) == expected);
    }
}

TEST_CASE("machine code: parameters by a generic address, which of sm_90 lie elsewhere where one may be a tensor's map; integers of four and of two bits; events of profilers") {
    driver_test::context();
    std::array<std::uint64_t, 4> single;
    std::array<std::uint32_t, 16> block;
    std::uint32_t last = 77;
    for (std::uint32_t i = 0; i < 4; ++i) single[i] = 0x1234567800000001u * (i + 1);
    for (std::uint32_t i = 0; i < 16; ++i) block[i] = 1000003u * (i + 1);
    const std::vector<void*> others{&single[0], &single[1], &single[2], &single[3], block.data(), &last};
    const std::vector<std::uint32_t> addressed = results("parameter_address.ptx", "parameter_address", others), packed = results("parameter_address.ptx", "packed_parts");
    const std::set<std::uint32_t> found(addressed.begin(), addressed.end());
    for (const std::uint32_t word : block) CHECK(found.contains(word));
    CHECK(found.contains(last));
    CHECK(std::set<std::uint32_t>(packed.begin(), packed.end()).size() > 100);
    for (const char* file : {"parameter_address.sm_80.cubin", "parameter_address.sm_90.cubin"}) {
        CAPTURE(file);
        CHECK(results(file, "parameter_address", others) == addressed);
        CHECK(results(file, "packed_parts") == packed);
    }
}

TEST_CASE("machine code: copies to shared memory with each hint to the cache") {
    driver_test::context();
    const std::vector<std::uint32_t> expected = results("copy_hints.ptx", "copy_hints");
    CHECK(std::set<std::uint32_t>(expected.begin(), expected.end()).size() > 50);
    for (const char* file : {"copy_hints.sm_80.cubin", "copy_hints.sm_90.cubin"}) {
        CAPTURE(file);
        CHECK(results(file, "copy_hints") == expected);
    }
}

TEST_CASE("machine code: constants that hold addresses of constants") {
    driver_test::context();
    const std::vector<std::uint32_t> expected = results("constant_addresses.ptx", "constant_addresses");
    CHECK(std::set<std::uint32_t>(expected.begin(), expected.end()) == std::set<std::uint32_t>{11, 22, 333, 444});
    for (const char* file : {"constant_addresses.sm_80.cubin", "constant_addresses.sm_90.cubin"}) {
        CAPTURE(file);
        CHECK(results(file, "constant_addresses") == expected);
    }
}

TEST_CASE("machine code: constants more than 32 KB behind the bank's beginning") {
    driver_test::context();
    const std::vector<std::uint32_t> expected = results("far_constants.ptx", "far_constants");
    CHECK(std::set<std::uint32_t>(expected.begin(), expected.end()).size() == 4);
    CHECK(results("far_constants.sm_90.cubin", "far_constants") == expected);
}

TEST_CASE("machine code: signs in sums of several words") {
    driver_test::context();
    const std::vector<std::uint32_t> expected = results("sign_chain.ptx", "sign_chain");
    CHECK(std::set<std::uint32_t>(expected.begin(), expected.end()).size() > 1000);
    for (const char* file : {"sign_chain.sm_80.cubin", "sign_chain.sm_90.cubin"}) {
        CAPTURE(file);
        CHECK(results(file, "sign_chain") == expected);
    }
}

TEST_CASE("machine code: absolute differences of bytes") {
    driver_test::context();
    const std::vector<std::uint32_t> expected = results("byte_differences.ptx", "byte_differences");
    CHECK(std::set<std::uint32_t>(expected.begin(), expected.end()).size() > 1000);
    for (const char* file : {"byte_differences.sm_75.cubin", "byte_differences.sm_80.cubin", "byte_differences.sm_90.cubin"}) {
        CAPTURE(file);
        CHECK(results(file, "byte_differences") == expected);
    }
}

TEST_CASE("machine code: bytes by an index of 32 bits") {
    driver_test::context();
    const std::vector<std::uint32_t> expected = results("byte_index.ptx", "byte_index");
    CHECK(std::set<std::uint32_t>(expected.begin(), expected.end()).size() > 200);
    for (const char* file : {"byte_index.sm_80.cubin", "byte_index.sm_90.cubin"}) {
        CAPTURE(file);
        CHECK(results(file, "byte_index") == expected);
    }
}

TEST_CASE("machine code: sines multiplied in another block or under a guard, minima of halves with predicates") {
    driver_test::context();
    for (const char* kernel : {"sine_in_arms", "sine_behind_branch", "sine_in_loop", "sine_of_turns", "halves_with_predicates"}) {
        const std::vector<std::uint32_t> expected = results("parted_sines.ptx", kernel);
        CHECK(std::set<std::uint32_t>(expected.begin(), expected.end()).size() > 100);
        for (const char* file : {"parted_sines.sm_80.cubin", "parted_sines.sm_90.cubin"}) {
            CAPTURE(kernel, file);
            CHECK(results(file, kernel) == expected);
        }
    }
}

TEST_CASE("machine code: quotients, remainders, reciprocals and roots") {
    driver_test::context();
    for (const char* kernel : {"quotients_u32", "remainders_u32", "both_u32", "by_threads_u32", "quotients_s32", "remainders_s32", "both_s32", "by_threads_s32",
                               "float_quotients", "float_quotients_ftz", "float_reciprocals", "float_roots", "float_chains"}) {
        const std::vector<std::uint32_t> expected = results("quotients.ptx", kernel);
        CHECK(std::set<std::uint32_t>(expected.begin(), expected.end()).size() > 30);
        for (const char* file : {"quotients.sm_80.cubin", "quotients.sm_90.cubin"}) {
            CAPTURE(kernel, file);
            CHECK(results(file, kernel) == expected);
        }
    }
}

TEST_CASE("machine code: whole numbers of bf16") {
    driver_test::context();
    const std::vector<std::uint32_t> expected = results("bfloat_rounding.ptx", "bfloat_rounding");
    CHECK(std::set<std::uint32_t>(expected.begin(), expected.end()).size() > 300);
    CHECK(results("bfloat_rounding.sm_90.cubin", "bfloat_rounding") == expected);
}

TEST_CASE("machine code: products with a negated matrix") {
    driver_test::context();
    for (const char* kernel : {"negated_halves", "negated_tf32", "negated_doubles"}) {
        CAPTURE(kernel);
        const std::vector<std::uint32_t> expected = results("negated_products.ptx", kernel);
        CHECK(std::set<std::uint32_t>(expected.begin(), expected.end()).size() > 1000);
        CHECK(results("negated_products.sm_90.cubin", kernel) == expected);
    }
}

TEST_CASE("machine code: the smallest and the largest of three halves, upper halves to bf16 and back, packed sums") {
    driver_test::context();
    for (const std::string kernel : {"three_halves", "half_conversions", "packed_sums"}) {
        CAPTURE(kernel);
        const std::vector<std::uint32_t> expected = results((kernel + ".ptx").c_str(), kernel.c_str());
        CHECK(std::set<std::uint32_t>(expected.begin(), expected.end()).size() > 1000);
        CHECK(results((kernel + ".sm_90.cubin").c_str(), kernel.c_str()) == expected);
    }
}

TEST_CASE("machine code: of sums of NaNs in shared memory the second operand's is kept") {
    // Where PTX's atomic operation, as ptxas compiles it for registers, keeps the old value's.
    driver_test::context();
    const std::vector<std::uint32_t> left = results("hopper_forms.sm_90.cubin", "sums_of_nans");
    for (std::uint32_t i = 0; i < left.size(); ++i) {
        const std::uint32_t word = (i * 2654435761u) >> 11;
        REQUIRE(left[i] == 3 * 0x7ff81234u + 7 * word + (0x7ff80000u | (word & 0xffff)));
    }
}

TEST_CASE("machine code: of two NaNs of a sum in shared memory by a generic address the one stays that the code's sum keeps") {
    driver_test::context();
    const std::vector<std::uint32_t> left = results("generic_sums.sm_90.cubin", "generic_sums");
    for (std::uint32_t i = 0; i < left.size(); ++i) {
        const std::uint32_t word = i * 2654435761u >> 11, low = word * 3 | 1;
        REQUIRE(left[i] == low + 5 * ((low & 0x7ffff) | 0xfff80000) + 7 * (word | 0x7ff80000));
    }
}

TEST_CASE("machine code: a NaN keeps its sign and its bits where a conversion to double changes signs") {
    // As an H100 does, for all halves; PTX has neg and abs, which make NaNs canonical.
    driver_test::context();
    const std::vector<std::uint32_t> left = results("signed_nans.sm_90.cubin", "signed_nans");
    enum Sign { kept, absolute, negative, negated };
    const auto upper = [](std::uint32_t bits, unsigned exponent_bits, unsigned fraction_bits, Sign sign) {
        const std::uint32_t of_nan = ((1u << exponent_bits) - 1) << fraction_bits,
                            magnitude = bits & ((1u << (exponent_bits + fraction_bits)) - 1);
        std::uint32_t is_negative = bits >> (exponent_bits + fraction_bits) & 1, word;
        if (magnitude > of_nan) {
            const std::uint32_t fraction = magnitude - of_nan;
            word = 0x7ff80000 | (fraction_bits > 20 ? fraction >> (fraction_bits - 20) : fraction << (20 - fraction_bits));
        } else {
            const int bias = (1 << (exponent_bits - 1)) - 1, exponent = int(magnitude >> fraction_bits);
            const double fraction = magnitude & ((1u << fraction_bits) - 1), unit = std::ldexp(1.0, -int(fraction_bits));
            const double value = exponent ? std::ldexp(1 + fraction * unit, exponent - bias) : std::ldexp(fraction * unit, 1 - bias);
            word = magnitude == of_nan ? 0x7ff00000u : std::uint32_t(std::bit_cast<std::uint64_t>(value) >> 32);
            if (sign == absolute) is_negative = 0;
            if (sign == negative) is_negative = 1;
            if (sign == negated) is_negative ^= 1;
        }
        return is_negative << 31 | word;
    };
    for (std::uint32_t i = 0; i < left.size(); ++i) {
        const std::uint32_t word = (i * 2654435761u >> 11) * 0x9e3779b1u | (i & 1) * 0x7f807c00u, half = word & 0xffff;
        REQUIRE(left[i] == upper(half, 5, 10, absolute) + 3 * upper(half, 5, 10, negative) + 5 * upper(half, 5, 10, negated) +
                               7 * upper(word, 8, 23, absolute) + 11 * upper(word, 8, 23, negated) + 13 * upper(half, 8, 7, kept));
    }
}

TEST_CASE("machine code: uniform predicates where some of the lanes are; sums of a warp for one atomic operation") {
    driver_test::context();
    constexpr unsigned bytes = 65536;
    const auto left_by = [&](const std::string& file, unsigned block_x, unsigned block_y) {
        const CUmodule module = load(file.c_str());
        CUfunction kernel = nullptr;
        REQUIRE(cuModuleGetFunction(&kernel, module, "k") == 0);
        std::vector<std::uint32_t> words(bytes / 4), all;
        for (std::uint32_t i = 0; i < words.size(); ++i) words[i] = i * 2654435761u;
        CUdeviceptr in = driver_test::allocate(bytes), out = driver_test::allocate(bytes),
                    scratch = driver_test::allocate(bytes);
        REQUIRE(cuMemcpyHtoD_v2(in, words.data(), bytes) == 0);
        REQUIRE(cuMemsetD8_v2(out, 0, bytes) == 0);
        REQUIRE(cuMemsetD8_v2(scratch, 0, bytes) == 0);
        std::array<std::uint64_t, 8> others{};
        std::array<void*, 4> parameters{&in, &out, &scratch, others.data()};
        REQUIRE(cuLaunchKernel(kernel, 1, 1, 1, block_x, block_y, 1, 0, nullptr, parameters.data(), nullptr) == 0);
        REQUIRE(cuCtxSynchronize() == 0);
        for (const CUdeviceptr memory : {out, scratch}) {
            REQUIRE(cuMemcpyDtoH_v2(words.data(), memory, bytes) == 0);
            all.insert(all.end(), words.begin(), words.end());
        }
        for (const CUdeviceptr memory : {in, out, scratch}) CHECK(cuMemFree_v2(memory) == 0);
        CHECK(cuModuleUnload(module) == 0);
        return all;
    };
    for (const auto& [name, block_x, block_y] : {std::tuple("uniform_predicates", 32, 1), std::tuple("combined_sum", 16, 6)}) {
        CAPTURE(name);
        const std::vector<std::uint32_t> expected = left_by(std::string(name) + ".ptx", block_x, block_y);
        CHECK(std::set<std::uint32_t>(expected.begin(), expected.end()).size() > 32);
        CHECK(left_by(std::string(name) + ".sm_90.cubin", block_x, block_y) == expected);
    }
}

TEST_CASE("machine code: the space that a generic address is of") {
    driver_test::context();
    const std::vector<std::uint32_t> expected = results("address_spaces.ptx", "address_spaces");
    CHECK(std::set<std::uint32_t>(expected.begin(), expected.end()) == std::set<std::uint32_t>{49, 50, 52, 56});
    for (const char* file : {"address_spaces.sm_80.cubin", "address_spaces.sm_90.cubin"}) {
        CAPTURE(file);
        CHECK(results(file, "address_spaces") == expected);
    }
}

TEST_CASE("machine code: halves of a constant") {
    driver_test::context();
    const std::vector<std::uint32_t> expected = results("constant_halves.ptx", "constant_halves");
    CHECK(std::set<std::uint32_t>(expected.begin(), expected.end()).size() == 2);
    CHECK(results("constant_halves.sm_90.cubin", "constant_halves") == expected);
}

TEST_CASE("machine code: pointers to shared memory that went through memory") {
    driver_test::context();
    constexpr unsigned grid = 16, block = 64;
    std::vector<std::array<std::uint32_t, 2>> words(block), expected(block);
    for (unsigned i = 0; i < block; ++i) expected[i].fill((i ^ 1) * 7 + 100); // by the generic and the shared address
    for (const char* file : {"shared_pointer.ptx", "shared_pointer.sm_80.cubin", "shared_pointer.sm_90.cubin"}) {
        CAPTURE(file);
        const CUmodule module = load(file);
        CUfunction kernel = nullptr;
        REQUIRE(cuModuleGetFunction(&kernel, module, "shared_pointer") == 0);
        CUdeviceptr kept = driver_test::allocate(grid * block * 8), out = driver_test::allocate(block * 8);
        std::array<void*, 2> parameters{&kept, &out};
        // Launches enough for windows of several workers.
        for (unsigned round = 0; round < 8; ++round)
            REQUIRE(cuLaunchKernel(kernel, grid, 1, 1, block, 1, 1, 0, nullptr, parameters.data(), nullptr) == 0);
        REQUIRE(cuCtxSynchronize() == 0);
        REQUIRE(cuMemcpyDtoH_v2(words.data(), out, block * 8) == 0);
        CHECK(words == expected);
        CHECK(cuMemFree_v2(kept) == 0);
        CHECK(cuMemFree_v2(out) == 0);
        CHECK(cuModuleUnload(module) == 0);
    }
}

TEST_CASE("machine code: small parameters that are read together") {
    driver_test::context();
    // As halves: 1.5 + 2, 0.5 * 3, and 1.5 + 3.
    std::array<std::uint16_t, 4> halves{0x3e00, 0x4000, 0x3800, 0x4200};
    const std::array<std::uint32_t, 2> expected{0x3e004300, 0x4480};
    for (const char* file : {"small_parameters.ptx", "small_parameters.sm_80.cubin", "small_parameters.sm_90.cubin"}) {
        CAPTURE(file);
        const CUmodule module = load(file);
        CUfunction kernel = nullptr;
        REQUIRE(cuModuleGetFunction(&kernel, module, "small_parameters") == 0);
        CUdeviceptr out = driver_test::allocate(8);
        REQUIRE(cuMemsetD8_v2(out, 0, 8) == 0);
        std::array<void*, 5> parameters{&out, &halves[0], &halves[1], &halves[2], &halves[3]};
        REQUIRE(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters.data(), nullptr) == 0);
        std::array<std::uint32_t, 2> words{};
        REQUIRE(cuMemcpyDtoH_v2(words.data(), out, 8) == 0);
        CHECK(words == expected);
        CHECK(cuMemFree_v2(out) == 0);
        CHECK(cuModuleUnload(module) == 0);
    }
}

TEST_CASE("machine code: libcudadevrt's grid barrier, and variables that hold addresses") {
    driver_test::context();
    constexpr unsigned count = blocks * threads;
    std::vector<std::uint32_t> expected(2 * count + 3);
    for (unsigned i = 0; i < count; ++i) {
        expected[i] = i;
        expected[count + i] = count - 1 - i;
    }
    expected[2 * count] = 'i';   // the text's second byte, by its address in the table
    expected[2 * count + 1] = 1; // a kernel's address is there
    expected[2 * count + 2] = 7;
    for (const char* file : {"grid_groups.ptx", "grid_groups.sm_90.cubin"}) {
        CAPTURE(file);
        const CUmodule module = load(file);
        CUfunction kernel = nullptr;
        REQUIRE(cuModuleGetFunction(&kernel, module, "meets") == 0);
        CUdeviceptr out = driver_test::allocate(4 * expected.size());
        std::array<void*, 1> parameters{&out};
        REQUIRE(cuLaunchCooperativeKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, nullptr, parameters.data()) == 0);
        REQUIRE(cuCtxSynchronize() == 0);
        std::vector<std::uint32_t> words(expected.size());
        REQUIRE(cuMemcpyDtoH_v2(words.data(), out, 4 * words.size()) == 0);
        CHECK(words == expected);
        CHECK(cuMemFree_v2(out) == 0);
        CHECK(cuModuleUnload(module) == 0);
    }
}

TEST_CASE("machine code: kernels launch kernels") {
    driver_test::context();
    constexpr std::size_t count = 8;
    // Two blocks of the first child, one each of the two behind it.
    const std::vector<std::uint32_t> expected(count, 2 * 3 + 2 + 1);
    for (const char* file : {"child_kernels.ptx", "child_kernels.sm_90.cubin"}) {
        CAPTURE(file);
        const CUmodule module = load(file);
        CUfunction kernel = nullptr;
        REQUIRE(cuModuleGetFunction(&kernel, module, "parent") == 0);
        CUdeviceptr sums = driver_test::allocate(4 * count);
        REQUIRE(cuMemsetD8_v2(sums, 0, 4 * count) == 0);
        std::array<void*, 1> parameters{&sums};
        REQUIRE(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters.data(), nullptr) == 0);
        REQUIRE(cuCtxSynchronize() == 0);
        std::vector<std::uint32_t> words(count);
        REQUIRE(cuMemcpyDtoH_v2(words.data(), sums, 4 * words.size()) == 0);
        CHECK(words == expected);
        CHECK(cuMemFree_v2(sums) == 0);
        CHECK(cuModuleUnload(module) == 0);
    }
}

TEST_CASE("machine code: exchanges and swaps of 128 bits") {
    driver_test::context();
    const std::vector<std::uint32_t> expected = results("wide_swaps.ptx", "wide_swaps");
    CHECK(std::set<std::uint32_t>(expected.begin(), expected.end()).size() > 300);
    CHECK(results("wide_swaps.sm_90.cubin", "wide_swaps") == expected);
}

TEST_CASE("machine code: questions to the device runtime") {
    driver_test::context();
    const std::vector<std::uint32_t> expected = results("device_questions.ptx", "questions");
    CHECK(std::set<std::uint32_t>(expected.begin(), expected.end()).size() > 5);
    CHECK(results("device_questions.sm_90.cubin", "questions") == expected);
}

TEST_CASE("machine code: managed variables") {
    driver_test::context();
    for (const char* file : {"combined_atomics.sm_80.cubin", "combined_atomics.sm_90.cubin"}) {
        CAPTURE(file);
        const CUmodule module = load(file);
        CUfunction kernel = nullptr;
        CUdeviceptr variable = 0;
        std::size_t size = 0;
        REQUIRE(cuModuleGetFunction(&kernel, module, "use_managed") == 0);
        REQUIRE(cuModuleGetGlobal_v2(&variable, &size, module, "managed") == 0);
        CHECK(size == 4);
        unsigned is_managed = 0;
        CHECK(cuPointerGetAttribute(&is_managed, 8, variable) == 0);
        CHECK(is_managed == 1);
        auto& value = *reinterpret_cast<volatile int*>(variable);
        CHECK(value == 7);
        value = 10;
        REQUIRE(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) == 0);
        REQUIRE(cuCtxSynchronize() == 0);
        CHECK(value == 73);
        CHECK(cuModuleUnload(module) == 0);
    }
}

TEST_CASE("machine code: headers that claim memory which is not there") {
    driver_test::context();
    std::ifstream file(PTARMIGAN_SOURCE_DIR "/tests/programs/cubin/combined_atomics.sm_80.cubin", std::ios::binary);
    const std::string image{std::istreambuf_iterator<char>(file), {}};
    Elf64_Ehdr header;
    REQUIRE(image.size() > sizeof header);
    std::memcpy(&header, image.data(), sizeof header);
    const auto refused = [&](std::size_t place, unsigned char byte) {
        std::string damaged = image;
        damaged[place] = static_cast<char>(byte);
        CUmodule module = nullptr;
        CHECK(cuModuleLoadData(&module, damaged.data()) != 0);
    };
    refused(offsetof(Elf64_Ehdr, e_shoff) + 5, 0x01); // a terabyte away
    for (unsigned section = 1; section < header.e_shnum; ++section) {
        const std::size_t at = header.e_shoff + section * sizeof(Elf64_Shdr);
        Elf64_Shdr read;
        std::memcpy(&read, image.data() + at, sizeof read);
        if (read.sh_type == SHT_NOBITS) continue;
        CAPTURE(section);
        refused(at + offsetof(Elf64_Shdr, sh_offset) + 3, 0x3a);
        refused(at + offsetof(Elf64_Shdr, sh_size) + 3, 0x3a);
    }
}
