// SPDX-License-Identifier: Apache-2.0
// cp.async (manual 9.7.9.25.3): the copy is done when it is started, which is one of the moments the manual allows.
// Groups then have nothing to wait for.
#include "translator/lower/access_mark.h"
#include "translator/lower/lane_array.h"
#include "translator/lower/lane_math.h"
#include "translator/lower/memory_access.h"

namespace ptarmigan::translator::lower {

using ptx::StateSpace;

namespace {

/// A side of the copy as 32-bit words.
MemoryAccess side(WarpEmitter& e, const ptx::Operand& operand, StateSpace space, unsigned bytes) {
    MemoryAccess access;
    access.address = e.address(operand, space);
    access.address.space = space;
    access.element = e.ir().getInt32Ty();
    access.bytes = 4;
    access.count = bytes / 4;
    return access;
}

/// Bytes that each lane reads, <W x i32>: `src-size`, or with a predicate none where it is true.
Value* source_sizes(WarpEmitter& e, const ptx::Operand& operand, unsigned bytes) {
    Ir& ir = e.ir();
    Value* full = e.splat(ir.getInt32(bytes));
    Value* value = e.lanes(operand);
    if (operand.type == ScalarType::pred) return ir.CreateSelect(value, llvm::Constant::getNullValue(full->getType()), full);
    return ir.CreateZExtOrTrunc(value, full->getType());
}

/// Lane by lane: bytes at and behind the lane's size are zero and the source behind it is not touched.
void copy_padded(WarpEmitter& e, const MemoryAccess& to, const MemoryAccess& from, Value* sizes, unsigned bytes) {
    Ir& ir = e.ir();
    LaneArray targets(e, e.broadcast(to.address.address)), sources(e, e.broadcast(from.address.address));
    LaneArray size_array(e, sizes);
    auto* type = llvm::FixedVectorType::get(ir.getInt8Ty(), bytes);
    llvm::SmallVector<llvm::Constant*, 16> numbers;
    for (unsigned i = 0; i < bytes; ++i) numbers.push_back(ir.getInt32(i));
    e.for_each_lane(e.active_bits(), [&](Value* lane) {
        const AccessMark mark(e, note_lane(e, lane));
        Value* size = ir.CreateVectorSplat(bytes, size_array.get(lane));
        Value* wanted = ir.CreateICmpULT(llvm::ConstantVector::get(numbers), size);
        llvm::CallInst* data = ir.CreateMaskedLoad(type, pointer(e, sources.get(lane)), llvm::Align(1), wanted,
                                                   llvm::Constant::getNullValue(type));
        tag_space(e, data, from.address.space);
        tag_space(e, ir.CreateAlignedStore(data, pointer(e, targets.get(lane)), llvm::Align(bytes)),
                  to.address.space);
    });
}

} // namespace

void cp_async(WarpEmitter& e, const Instruction& inst) {
    const std::uint64_t size = inst[Role::size].value;
    const bool known = size == 16 || (inst.has(Word::ca) && (size == 4 || size == 8));
    if (!known) e.unsupported("a copy of " + std::to_string(size) + " bytes");
    const auto bytes = static_cast<unsigned>(size);
    const MemoryAccess to = side(e, inst[Role::d], StateSpace::shared, bytes);
    const MemoryAccess from = side(e, inst[Role::a], StateSpace::global, bytes);
    const ptx::Operand& source_size = inst[Role::src_size];
    if (source_size.kind == ptx::Operand::Kind::none) {
        store_lanes(e, to, load_lanes(e, from));
        return;
    }
    copy_padded(e, to, from, source_sizes(e, source_size, bytes), bytes);
}

} // namespace ptarmigan::translator::lower
