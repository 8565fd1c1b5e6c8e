// SPDX-License-Identifier: Apache-2.0
// createpolicy (manual 9.7.9.18). Cache policies are hints that nothing here looks at, but programs can store them, so
// they have the hardware's bits: what ptxas 13.0 computes them by, step by step, as an H100 confirms
// (tests/recordings/cache_policies_h100.txt).
//
//   bits   63..61  60..59  58..57             56                  55..52      50..44  43..37
//   parts  0       2       primary priority   secondary is first  sixteenths  0       0
//   range  0       3       primary priority   secondary is first  block size  start   blocks
//
// Priorities: unchanged 0, first 1, last 2, normal 3. A range is up to 127 blocks of 4 KB to 128 MB, the smallest of
// which 128 hold its whole; start is the block that the address is in, modulo 128.
#include "translator/lower/lane_calls.h"

#include <llvm/IR/Intrinsics.h>

namespace ptarmigan::translator::lower {

namespace {

constexpr unsigned least_block = 12, most_blocks = 127; ///< log2 of bytes

enum class Kind : unsigned { parts = 2, range = 3 };

/// Bits 52 to 63 without the sixteenths or the block size.
std::uint64_t priorities(const Instruction& inst, Kind kind) {
    std::uint64_t bits = unsigned(kind) << 7;
    unsigned named = 0; // the primary priority stands first
    for (unsigned i = 0; i < inst.modifier_count; ++i) {
        const bool primary = named == 0;
        switch (inst.modifiers[i]) {
        case Word::L2_evict_first: bits |= primary ? 1 << 5 : 1 << 4; break;
        case Word::L2_evict_last: bits |= 2 << 5; break;
        case Word::L2_evict_normal: bits |= 3 << 5; break;
        case Word::L2_evict_unchanged: break;
        default: continue;
        }
        ++named;
    }
    return bits;
}

Value* convert(Ir& ir, Value* real, unsigned bits) {
    llvm::Type* type = typed(ir.getIntNTy(bits), real);
    return ir.CreateIntrinsic(llvm::Intrinsic::fptoui_sat, {type, real->getType()}, {real});
}

/// log2 of the block's size, 32 bits, from the special function unit's logarithm of the rounded size: a size just above
/// a power of two may count as that power.
Value* block_size(WarpEmitter& e, Ir& ir, Value* total) {
    Value* logarithm = call_lanes(e, "lg2_f32", ir.CreateUIToFP(total, typed(ir.getFloatTy(), total)), ir.getFloatTy());
    Value* bits = convert(ir, ir.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, logarithm), 32);
    return maximum(ir, ir.CreateSub(bits, integer(bits, 7)), integer(bits, least_block), true);
}

Value* range(WarpEmitter& e, Ir& ir, std::uint64_t kind, Value* address, Value* primary, Value* total) {
    Value* size = block_size(e, ir, total);
    Value* wide_size = resize(ir, size, 64, false);
    // The end is rounded up to a block in 32 bits.
    Value* length = ir.CreateAdd(ir.CreateShl(integer(size, 1), size), ir.CreateSub(primary, integer(primary, 1)));
    Value* end = ir.CreateLShr(ir.CreateAdd(address, resize(ir, length, 64, false)), wide_size);
    Value* start = ir.CreateLShr(address, wide_size);
    Value* blocks = minimum(ir, ir.CreateSub(end, start), integer(start, most_blocks), false);
    Value* bits = ir.CreateOr(integer(start, kind), ir.CreateSub(wide_size, integer(wide_size, least_block)));
    bits = ir.CreateOr(ir.CreateShl(bits, integer(bits, 8)), ir.CreateAnd(start, integer(start, 0x7f)));
    bits = ir.CreateOr(ir.CreateShl(bits, integer(bits, 7)), blocks);
    bits = ir.CreateShl(bits, integer(bits, 37));
    // An empty range is one without priorities.
    Value* empty = integer(bits, std::uint64_t(Kind::range) << 59);
    return ir.CreateSelect(ir.CreateICmpEQ(total, integer(total, 0)), empty, bits);
}

/// As a number: ptxas extends 32 bits by zeros.
LaneValue range_address(WarpEmitter& e, const Instruction& inst) {
    const ptx::Operand& operand = inst[Role::a];
    LaneValue address = e.address(operand, inst.space).address;
    if (!address.is_uniform()) address = LaneValue::varying(e.broadcast(address));
    if (operand.base != ptx::Operand::Base::reg || ptx::bit_size(operand.type) != 32) return address;
    return e.apply({address}, [&](Ir& ir, Values v) {
        Value* offset = integer(v[0], operand.value);
        return ir.CreateAdd(ir.CreateAnd(ir.CreateSub(v[0], offset), integer(v[0], 0xffffffffu)), offset);
    });
}

} // namespace

void createpolicy_cvt(WarpEmitter& e, const Instruction& inst) {
    e.write(inst[Role::d], e.read(inst[Role::a]));
}

void createpolicy_fractional(WarpEmitter& e, const Instruction& inst) {
    const std::uint64_t kind = priorities(inst, Kind::parts);
    if (inst[Role::fraction].kind == ptx::Operand::Kind::none)
        return e.write(inst[Role::d], LaneValue::uniform(e.ir().getInt64((kind + 0xf) << 52)));
    e.write(inst[Role::d], e.apply({e.read(inst[Role::fraction])}, [&](Ir& ir, Values v) {
        Value* sixteenths = convert(ir, ir.CreateFMul(v[0], real(v[0], 0x1.ffae14p+3)), 32); // 15.99
        sixteenths = resize(ir, sixteenths, 64, false);
        sixteenths = ir.CreateAnd(sixteenths, integer(sixteenths, 0xf));
        return ir.CreateShl(ir.CreateOr(sixteenths, integer(sixteenths, kind)), integer(sixteenths, 52));
    }));
}

void createpolicy_range(WarpEmitter& e, const Instruction& inst) {
    const LaneValue address = range_address(e, inst);
    const LaneValue primary = e.read(inst[Role::primary_size]), total = e.read(inst[Role::total_size]);
    const std::uint64_t kind = priorities(inst, Kind::range);
    e.write(inst[Role::d],
            e.apply({address, primary, total}, [&](Ir& ir, Values v) { return range(e, ir, kind, v[0], v[1], v[2]); }));
}

} // namespace ptarmigan::translator::lower
