// SPDX-License-Identifier: Apache-2.0
#include "translator/lower/prefetch.h"

#include "translator/lower/memory_access.h"

namespace ptarmigan::translator::lower {

void prefetch_ahead(WarpEmitter& e, const LaneAddress& address, std::int32_t ahead) {
    if (!address.address.is_uniform()) return;
    Ir& ir = e.ir();
    constexpr unsigned read = 0, keep_in_all_levels = 3, data = 1;
    llvm::Value* at = pointer(e, ir.CreateAdd(address.address.base, ir.getInt64(std::uint64_t(std::int64_t(ahead)))));
    ir.CreateIntrinsic(llvm::Intrinsic::prefetch, {at->getType()},
                       {at, ir.getInt32(read), ir.getInt32(keep_in_all_levels), ir.getInt32(data)});
}

} // namespace ptarmigan::translator::lower
