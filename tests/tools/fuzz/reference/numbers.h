// SPDX-License-Identifier: Apache-2.0
// Floats and doubles by the host's own arithmetic, with the GPU's NaNs and its flushing of subnormals.
#pragma once

#include "frontend/ptx/module.h"

namespace fuzz::reference {

using Bits = unsigned __int128;

enum class Rounding : std::uint8_t { nearest, zero, down, up };
Rounding rounding_of(const ptarmigan::ptx::Instruction& inst);

/// How an instruction computes.
struct Arithmetic {
    ptarmigan::ptx::ScalarType type; ///< f32 or f64
    Rounding rounding = Rounding::nearest;
    bool ftz = false, sat = false;

    Bits add(Bits a, Bits b) const;
    Bits sub(Bits a, Bits b) const;
    Bits mul(Bits a, Bits b) const;
    Bits fma(Bits a, Bits b, Bits c) const;
    Bits div(Bits a, Bits b) const;
    Bits sqrt(Bits a) const;
    /// neg or abs.
    Bits with_sign(Bits a, bool negates) const;
    Bits least(Bits a, Bits b, bool is_max, bool keeps_nan, bool xors_signs) const;
};

bool compare_floats(const ptarmigan::ptx::Instruction& inst, ptarmigan::ptx::ScalarType type, Bits a, Bits b, bool ftz);
bool compare_with_zero_is_less_or_nan(Bits value, bool ftz);
bool tested(ptarmigan::ptx::ScalarType type, Bits value, const ptarmigan::ptx::Instruction& inst);

/// cvt between integers, floats and doubles.
Bits converted(const ptarmigan::ptx::Instruction& inst, Bits value);

} // namespace fuzz::reference
