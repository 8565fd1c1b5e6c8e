// SPDX-License-Identifier: Apache-2.0
// What is known of instructions that the manual allows to be approximate.
#pragma once

#include "frontend/isa/instruction_form.h"

namespace ptarmigan::tool {

struct Approximation {
    const char*
        bound; ///< the manual's limit of the error; PTARMIGAN_APPROX=fast keeps it, exact gives the hardware's bits
    double exact, fast; ///< nanoseconds of processor time per 16 lanes, see approximations.def
    bool has_fast_form; ///< false: the same code in both
};

/// Null for forms whose results the manual defines exactly.
const Approximation* approximation_of(ptx::FormId form);

} // namespace ptarmigan::tool
