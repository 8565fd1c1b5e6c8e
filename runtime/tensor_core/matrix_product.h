// SPDX-License-Identifier: Apache-2.0
// Products of dense matrices with the arithmetic of Hopper's tensor cores, bit for bit. Fragments, descriptors and
// instructions are not known here: callers hand over plain matrices of one instruction.
#pragma once

#include "frontend/ptx/matrix_type.h"

#include <cstdint>

namespace ptarmigan::runtime::tensor_core {

/// Elements. tf32 fills 32-bit words of which the upper 19 count; s4 and u4 lie two in a byte, the first in the low
/// half; b1 lie 32 in a word, the first in bit 0. e3m2 and e2m3 are in the low bits of a byte, e2m1_in_byte in bits 2
/// to 5 of one; e2m1 lie two in a byte like s4.
using Format = ptx::MatrixType;

using Rounding = ptx::MatrixRounding;

/// The sequence of steps that makes an element of D (README.md has the formulas).
enum class Unit : std::uint8_t {
    fused, ///< f16, bf16, tf32, and Blackwell's fp8, fp6 and fp4: one sum of all products and C; in f32, but in f16 if
           ///< both C and D are f16
    fused_fp8,     ///< fp8 of wgmma: the same with 13 fraction bits; C and D have one type
    two_fused,     ///< tf32 of wmma: a sum for each half of k, the first one's result is the second one's C
    fp8_by_f16,    ///< fp8 of mma.sync: two sums of products from zero, then C added; C and D have one type
    scalar_f16,    ///< mma.sync.m8n8k4: f32 operations, each rounded to nearest even
    chain_f64,     ///< f64: a fused multiply-add for each k, each rounded
    integer,       ///< s8, u8, s4, u4: exact sums modulo 2^32, or saturated once
    bits_xor,      ///< b1: the number of bits that differ
    bits_and,      ///< b1: the number of bits that both have
    scaled,        ///< fp8, fp6, fp4 with scales of ue8m0: as fused, scales count to the factors' exponents
    scaled_groups, ///< e2m1 with scales: exact sums of 16 products, times their scales, are one sum of 35 bits with C
};

/// Types of scales: ue8m0 is 2^(byte - 127), ue4m3 e4m3 whose sign bit does not count.
enum class ScaleFormat : std::uint8_t { ue8m0, ue4m3 };

/// How close sums of floating-point products come to the GPU's: the same bits, or sums in f32, some times as fast.
/// Integers, f64 and m8n8k4 have the GPU's bits in any case.
enum class Accuracy : std::uint8_t { exact, fast };

/// What the matrices of an instruction are and how they are multiplied.
struct MatrixProduct {
    Format a, b, c, d;
    Unit unit;
    std::uint16_t m, n, k; ///< k: the elements of a column of B; rows of A have half of them if `sparse`
    bool sparse = false;
    bool saturate = false;       ///< .satfinite of integers
    bool negate_product = false; ///< A or B (not both) is negated; NaN stays NaN. Units fused and fused_fp8
    bool c_is_zero = false;      ///< C counts as +0 and is not read
    ScaleFormat scale{};         ///< units scaled and scaled_groups
    std::uint8_t scales = 0;     ///< of a row of A and of a column of B, each for as many stored elements
    std::uint8_t c_halvings = 0; ///< C is taken times 2^-this, exactly. Unit fused
    Rounding rounding = Rounding::nearest_even; ///< of unit chain_f64

    /// The elements of a row of A.
    constexpr unsigned stored() const { return sparse ? k / 2u : k; }
};

/// D = A x B + C. `a`: m rows of stored() elements; `b`: n columns of k elements; `c`, `d`: m rows of n elements; all
/// without gaps, from addresses that are multiples of 8 on. `d` may be `c`.
///
/// `selected`, for sparse products: for each element of `a` the k that it is multiplied with (any: equal and
/// descending ones too). tf32 has two entries for each element: which 16-bit half of the column (0 .. 2k-1) becomes the
/// low half of the factor, and which the high half.
///
/// `scales`: of products that have some, those of rows of A and columns of B, product.scales bytes for each.
///
/// As accurate as PTARMIGAN_MMA said when it was first called. Thread-safe, and independent of the calling thread's
/// floating-point modes, which it leaves as they were.
struct Scales {
    const std::uint8_t *a = nullptr, *b = nullptr;
};
void multiply(const MatrixProduct& product, const void* a, const void* b, const void* c, void* d,
              const std::uint8_t* selected = nullptr, const Scales& scales = {});

struct Operands;

/// multiply() for one product, for callers that do it often: what code does it is chosen once (6 ns).
class Multiplier {
public:
    explicit Multiplier(const MatrixProduct& product);
    void operator()(const void* a, const void* b, const void* c, void* d, const std::uint8_t* selected = nullptr,
                    const Scales& scales = {}) const;

private:
    MatrixProduct product_;
    void (*code_)(const MatrixProduct&, const Operands&);
};

} // namespace ptarmigan::runtime::tensor_core
