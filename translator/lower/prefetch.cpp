// SPDX-License-Identifier: Apache-2.0
#include "translator/lower/prefetch.h"

#include "translator/lower/memory_access.h"

#include <algorithm>

namespace ptarmigan::translator::lower {

namespace {

constexpr std::int64_t line_bytes = 64;
/// More lines than this for one load would be work, not a hint.
constexpr std::int64_t line_limit = 4;

} // namespace

void prefetch_ahead(WarpEmitter& e, const LaneAddress& address, unsigned bytes, std::int32_t ahead) {
    const LaneValue& place = address.address;
    if (place.shape.is_varying() || place.stride) return;
    std::int64_t length = bytes;
    if (place.is_affine()) length += *std::max_element(place.shape.offsets->begin(), place.shape.offsets->end());
    if (length > line_bytes * line_limit) return;
    Ir& ir = e.ir();
    constexpr unsigned read = 0, data = 1;
    const unsigned locality = place.is_uniform() ? 3 : 2;
    for (std::int64_t line = 0; line < length; line += line_bytes) {
        llvm::Value* at = pointer(e, ir.CreateAdd(place.base, ir.getInt64(std::uint64_t(ahead + line))));
        ir.CreateIntrinsic(llvm::Intrinsic::prefetch, {at->getType()},
                           {at, ir.getInt32(read), ir.getInt32(locality), ir.getInt32(data)});
    }
}

} // namespace ptarmigan::translator::lower
