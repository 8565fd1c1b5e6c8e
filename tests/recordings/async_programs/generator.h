// SPDX-License-Identifier: Apache-2.0
// Random kernels over mbarrier objects, asynchronous copies and clusters whose results follow from the manual alone.
//
// A program is a list of stages, gone through once or several times. All CTAs of a cluster start a stage together; in it they copy into buffers
// that nothing else touches, from ones that nobody writes, wait for mbarrier objects or groups, and mix what they find into a
// number per thread. Between two stages threads read their neighbours' buffers and write their own.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace async_programs {

inline constexpr unsigned buffer_bytes = 1024, buffer_count = 6, barrier_count = 4;
inline constexpr unsigned most_threads = 128, most_ctas = 8;
inline constexpr unsigned input_bytes = 1u << 16;      ///< random words that all programs read; the tensor lies there
inline constexpr unsigned scratch_bytes = 4096;        ///< of global memory, of each CTA
inline constexpr unsigned slot_count = 8;              ///< of the grid: one for each way to reduce, of buffer_bytes
inline constexpr unsigned dump_bytes = buffer_bytes * buffer_count; ///< of each CTA

/// A tensor of words over the input, or over the scratch memory of all CTAs.
struct TensorShape {
    std::array<std::uint64_t, 2> size{};
    std::uint64_t pitch = 0; ///< bytes
    std::array<std::uint32_t, 2> box{};
    unsigned swizzle = 0; ///< CUtensorMapSwizzle
};

/// k<seed>(.param .u64 input, scratch, slots, dump, out; .param .align 64 .b8 load_map[128], store_map[128]). `out` has a word per thread.
struct Program {
    std::string text; ///< without .version and .target
    unsigned grid = 1, block = 32;
    TensorShape load, store;
};

extern const char* const program_head; ///< .version, .target, .address_size

Program generate(std::uint32_t seed);

} // namespace async_programs
