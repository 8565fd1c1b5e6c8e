// SPDX-License-Identifier: Apache-2.0
// What the vector code takes: products whose lines lie as they are summed.
#pragma once

#include "runtime/tensor_core/portable_product.h"

#include <cstdint>

namespace ptarmigan::runtime::tensor_core {

/// Room for a matrix A without gaps where the given one is sparse, and for fp8 that two sums of f16 multiply.
class DensePair {
public:
    /// Makes a product dense (zeros where A has no element), and puts elements of the first sum of Unit::fp8_by_f16
    /// first. False if it can't: two elements of a row are multiplied with one of a column, or with half of each of
    /// two. Results are the same but for what zero times infinity or NaN gives.
    bool make(MatrixProduct& product, Operands& operands);

private:
    bool fill_gaps(const MatrixProduct& product, const Operands& operands);

    static constexpr unsigned most_bytes = 128 * 64;   ///< of A: 128 rows of 32 f16, 16 tf32 or 64 bytes
    static constexpr unsigned most_elements = 16 * 64; ///< of fp8 on mma.sync
    alignas(64) std::uint8_t dense_[most_bytes];
    alignas(64) std::uint8_t a_[most_elements], b_[most_elements];
};

/// Lines of Unit::fp8_by_f16's bytes with the elements of the first sum first: dense ones.
void part_for_two_sums(const void* from, unsigned lines, unsigned k, void* to);

/// While it lives, the calling thread rounds f32 and f64 as `rounding` says and keeps subnormal numbers.
class FloatMode {
public:
    explicit FloatMode(Rounding rounding);
    ~FloatMode();
    FloatMode(const FloatMode&) = delete;
    FloatMode& operator=(const FloatMode&) = delete;

private:
    unsigned before_;
};

} // namespace ptarmigan::runtime::tensor_core
