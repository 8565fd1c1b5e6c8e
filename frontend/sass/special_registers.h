// SPDX-License-Identifier: Apache-2.0
// Names of special registers.
#pragma once

#include <string>
#include <string_view>

namespace ptarmigan::sass {

/// SR_SWINHI, sm_90: the upper half of generic addresses of shared memory.
inline constexpr unsigned shared_window_high_number = 47;
inline constexpr unsigned cluster_rank_number = 136; ///< SR_CgaCtaId

/// SR_LMEMHIOFF: the lowest that R1 may be.
inline constexpr unsigned lowest_stack_number = 55;

/// As the disassembler writes it: "SR_TID.X", "SR161" for one without a name.
std::string special_register_name(unsigned number);
/// The operand of a PTX mov that has its value; empty if there is none.
std::string_view special_register_in_ptx(unsigned number);

} // namespace ptarmigan::sass
