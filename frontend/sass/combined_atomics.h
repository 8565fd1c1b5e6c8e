// SPDX-License-Identifier: Apache-2.0
// Atomic operations that ptxas combined: where all lanes that are together would do the same one, it lets one lane do
// it for them:
//
//   VOTEU.ANY UR4, UPT, PT             which lanes are here
//   FLO.U32 R4, UR4                    the highest of them
//   ISETP.EQ.U32.AND P0, PT, R4, R7    am I that one (R7 is SR_LANEID)
//   @P0 ATOMG.E.ADD ..., R5            R5 is POPC of UR4, or REDUX of what each lane has
//   SHFL.IDX PT, R0, R3, R4, 0x1f      what was there before, plus the number of lanes below (SR_LTMASK & UR4)
//
// Any set of lanes with this one in it is a right answer to the vote, also this lane alone. Then each lane does the
// atomic operation for itself, as the source said, and needs no other: so nobody waits behind a loop for those who
// still wait in it.
#pragma once

#include "frontend/sass/instruction.h"

#include <cstdint>
#include <functional>
#include <set>
#include <span>

namespace ptarmigan::sass {

/// How far an operation and the vote that chooses who does it are apart, at most, in instructions.
inline constexpr std::uint32_t combination_limit = 256;

/// Whether the register or predicate is read at this byte offset of the block or behind it, before it is written.
using IsReadBehind = std::function<bool(std::uint32_t, const Operand&)>;

/// Byte offsets of the VOTE and REDUX in code[begin / 16, end / 16), a basic block, that only choose who does an atomic
/// operation for all.
std::set<std::uint32_t> find_combined_atomics(std::span<const Instruction> code, std::uint32_t begin, std::uint32_t end,
                                              const IsReadBehind& is_read_behind);

/// Whether the instruction reads, or without a condition writes, any part of the register or predicate.
bool reads(const Instruction& inst, const Operand& what);
bool overwrites(const Instruction& inst, const Operand& what);

} // namespace ptarmigan::sass
