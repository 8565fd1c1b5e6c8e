// SPDX-License-Identifier: Apache-2.0
#include "translator/jit/line_table.h"

#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/DebugInfo/DWARF/DWARFDebugLine.h>
#include <llvm/Object/ObjectFile.h>

#include <algorithm>

namespace ptarmigan::translator {

std::vector<LineEntry> read_line_table(const llvm::object::ObjectFile& object,
                                       const std::map<std::uint64_t, std::uint32_t>& section_offsets) {
    std::vector<LineEntry> lines;
    const auto ignore = [](llvm::Error error) { llvm::consumeError(std::move(error)); };
    const auto context = llvm::DWARFContext::create(object, llvm::DWARFContext::ProcessDebugRelocations::Process,
                                                    nullptr, "", ignore, ignore);
    for (const auto& unit : context->compile_units()) {
        const llvm::DWARFDebugLine::LineTable* table = context->getLineTableForUnit(unit.get());
        if (!table) continue;
        for (const llvm::DWARFDebugLine::Row& row : table->Rows) {
            const auto section = section_offsets.find(row.Address.SectionIndex);
            if (section == section_offsets.end() || row.EndSequence) continue;
            lines.push_back({section->second + static_cast<std::uint32_t>(row.Address.Address), row.Line, row.Column});
        }
    }
    std::stable_sort(lines.begin(), lines.end(),
                     [](const LineEntry& a, const LineEntry& b) { return a.offset < b.offset; });
    // Of several rows at one address the last is in force; equal neighbours say nothing new.
    std::vector<LineEntry> compact;
    for (const LineEntry& entry : lines) {
        if (!compact.empty() && compact.back().offset == entry.offset) compact.pop_back();
        if (!compact.empty() && compact.back().line == entry.line && compact.back().access == entry.access) continue;
        compact.push_back(entry);
    }
    return compact;
}

} // namespace ptarmigan::translator
