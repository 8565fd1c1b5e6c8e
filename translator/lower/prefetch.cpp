// SPDX-License-Identifier: Apache-2.0
#include "translator/lower/prefetch.h"

#include "translator/lower/memory_access.h"

#include <algorithm>
#include <map>
#include <vector>

namespace ptarmigan::translator::lower {

namespace {

constexpr std::int64_t line_bytes = 64;
/// More lines than this for one load would be work, not a hint.
constexpr std::size_t line_limit = 8;

/// A line is `offset` + `steps` * the address's run-time stride behind the address.
struct Line {
    std::int64_t steps, offset;
    auto operator<=>(const Line&) const = default;
};

/// The lines of an access, as far apart as the address at run time may make them: one more is possible.
std::vector<Line> lines_of(const LaneValue& place, unsigned bytes) {
    if (!place.is_affine()) return {{0, 0}};
    const LaneOffsets &offsets = *place.shape.offsets, *steps = place.shape.steps;
    std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> rows; // by steps: first and last offset
    for (std::size_t lane = 0; lane < offsets.size(); ++lane) {
        const auto row = rows.try_emplace(steps ? (*steps)[lane] : 0, std::pair{offsets[lane], offsets[lane]}).first;
        row->second = {std::min(row->second.first, offsets[lane]), std::max(row->second.second, offsets[lane])};
    }
    std::vector<Line> lines;
    for (const auto& [row, ends] : rows)
        for (std::int64_t offset = ends.first; offset < ends.second + bytes && lines.size() <= line_limit;
             offset += line_bytes)
            lines.push_back({row, offset});
    return lines;
}

} // namespace

void prefetch_ahead(WarpEmitter& e, const LaneAddress& address, unsigned bytes, llvm::Value* ahead, CacheLevel level,
                    bool for_write) {
    const LaneValue& place = address.address;
    if (place.shape.is_varying()) return;
    const std::vector<Line> lines = lines_of(place, bytes);
    if (lines.size() > line_limit) return;
    Ir& ir = e.ir();
    constexpr unsigned data = 1;
    llvm::Value* first = ir.CreateAdd(place.base, ahead);
    for (const Line& line : lines) {
        llvm::Value* at = ir.CreateAdd(first, ir.getInt64(std::uint64_t(line.offset)));
        if (line.steps != 0) at = ir.CreateAdd(at, ir.CreateMul(place.stride, ir.getInt64(std::uint64_t(line.steps))));
        at = pointer(e, at);
        ir.CreateIntrinsic(
            llvm::Intrinsic::prefetch, {at->getType()},
            {at, ir.getInt32(for_write ? 1 : 0), ir.getInt32(level == CacheLevel::first ? 3 : 2), ir.getInt32(data)});
    }
}

} // namespace ptarmigan::translator::lower
