// SPDX-License-Identifier: Apache-2.0
// Whole kernels in PTX through libptarmigan's interface. ctest runs the executable several times, with the environment
// asking for other lane widths, divergence and barrier forms.
#pragma once

#include "ptarmigan/ptarmigan.h"

#include <string>
#include <vector>

namespace ptarmigan::test {

/// What a kernel's text says before and behind its name.
struct Frame {
    std::string target = "sm_90", version = "9.0";
    std::string directives; ///< of the entry, such as ` .reqnctapercluster 2`
};

/// A module with one kernel `k` (parameters p0, p1, ...: .u64) whose body is `body`; `globals` come before it.
/// Registers: %p<8> pred, %c<2> b8, %h<32> b16, %r<64> b32, %l<64> b64, %f<32> f32, %d<16> f64, %q<8> b128 (from version 8.3 on). %r60 is %tid.x,
/// %r61 %ctaid.x, %r62 the thread's number in the grid, %l60 to %l63 the parameters p0 to p3.
std::string kernel_text(const std::string& body, const std::string& globals = "", const Frame& frame = {});

/// Device memory that mirrors a vector.
template <class T> class Array {
public:
    explicit Array(std::vector<T> values) : buffer_(values.size() * sizeof(T)), size_(values.size()) {
        buffer_.upload(values.data(), size_ * sizeof(T));
    }
    explicit Array(std::size_t size) : Array(std::vector<T>(size)) {}
    std::uint64_t address() const { return buffer_.address(); }
    std::vector<T> values() const {
        std::vector<T> result(size_);
        buffer_.download(result.data(), size_ * sizeof(T));
        return result;
    }

private:
    Buffer buffer_;
    std::size_t size_;
};

/// Runs kernel_text(body, globals) and waits.
void run(const std::string& body, Extents grid, Extents block, std::initializer_list<std::uint64_t> parameters,
         const std::string& globals = "", std::uint32_t dynamic_shared = 0, const Frame& frame = {});

} // namespace ptarmigan::test
