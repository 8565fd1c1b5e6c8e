// SPDX-License-Identifier: Apache-2.0
// Collectives of lanes that may not be together. ptxas makes two ways of them:
//
//   BRA.DIV ~URZ, slow                 to the slow way, unless all lanes of the mask are here
//   SHFL.BFLY PT, R5, R10, 0x10, 0x1f
//   join: ...
//   slow: ... CALL.REL.NOINC f         f: WARPSYNC R12; SHFL.BFLY PT, R7, R6, R7, R11; RET
//   BRA join
//
// Lanes wait for each other at what follows here, so both ways do the same, and the fast one is shorter. But ptxas may
// know that lanes never come to this place together (the loop of lane 0, parted from the others' by `if (lane == 0)`):
// then it leaves collectives out of the fast way, which nobody takes.
#pragma once

#include "frontend/sass/instruction.h"

#include <cstdint>
#include <span>

namespace ptarmigan::sass {

/// What lanes of a warp do together.
bool is_collective(const Instruction& inst);

/// Whether the slow way of the BRA.DIV at this byte offset of the code does other things together than the fast one.
/// False where that can't be told. Instructions without a row have no form.
bool slow_way_differs(std::span<const Instruction> code, std::uint32_t division);

} // namespace ptarmigan::sass
