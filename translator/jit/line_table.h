// SPDX-License-Identifier: Apache-2.0
// PTX lines of machine code, from the object's DWARF line table.
#pragma once

#include "translator/compile.h"

#include <cstdint>
#include <map>
#include <vector>

namespace llvm::object {
class ObjectFile;
}

namespace ptarmigan::translator {

/// Lines of all executable sections. `section_offsets` maps a section's index in the object to its place in the
/// image. Sorted by offset, one entry per change of line; empty if the object has no line table.
std::vector<LineEntry> read_line_table(const llvm::object::ObjectFile& object,
                                       const std::map<std::uint64_t, std::uint32_t>& section_offsets);

} // namespace ptarmigan::translator
