// SPDX-License-Identifier: Apache-2.0
// What the tests know of an instruction form; made from their data when the tool is built (tools/isa_coverage).
#pragma once

#include "frontend/isa/instruction_form.h"

#include <string>
#include <string_view>

namespace ptarmigan::tool {

struct Evidence {
    unsigned recorded;           ///< combinations of words and types, and programs, whose results equal the H200's
    unsigned exhaustive;         ///< combinations for which all inputs were compared
    unsigned differing;          ///< combinations that are known to differ
    unsigned judged;             ///< statements whose acceptance by ptxas is compared
    std::string_view programs;   ///< that contain the form, among those that run and check themselves; by name
    std::string_view unit_tests; ///< sources of unit tests that name the form
};

const Evidence& evidence_of(ptx::FormId form);

/// "recorded", "recorded in part", "manual" or "-" for a form that can't be executed; see exactness_legend().
std::string exactness_of(const ptx::FormInfo& form);
/// What the words of exactness_of() mean, one per line.
std::string_view exactness_legend();

/// The tests behind a form: "recording:12 programs:31 unit:float_test ptxas:8"; empty if there is none.
std::string tests_of(ptx::FormId form);

} // namespace ptarmigan::tool
