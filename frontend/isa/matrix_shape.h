// SPDX-License-Identifier: Apache-2.0
// The shape word of a matrix instruction.
#pragma once

#include "frontend/isa/instruction_form.h"

#include <span>

namespace ptarmigan::ptx {

/// mMnNkK or mMnN: A is M x K, B is K x N, C and D are M x N.
struct MatrixShape {
    unsigned m = 0, n = 0, k = 0;
};

/// What the first such word among `words` says; zeros if there is none.
MatrixShape matrix_shape(std::span<const Modifier> words);

} // namespace ptarmigan::ptx
