// SPDX-License-Identifier: Apache-2.0
// Conversions of floating point to 32-bit integers by x86's instructions, which round by themselves and answer what is
// out of range with one number: half the operations of rounding, bounding and converting.
#include "translator/llvm/sink_nan_canonicalization.h"
#include "translator/lower/conversion.h"
#include "translator/lower/lane_calls.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>

namespace ptarmigan::translator::lower {

namespace {

namespace In = llvm::Intrinsic;

constexpr unsigned current_rounding = 4; ///< of instructions of 512 bits: what MXCSR says

/// The instruction for `lanes` of float or double, to the nearest even number or toward zero. Those of 512 bits take a
/// mask and a rounding.
In::ID instruction_for(bool is_double, unsigned lanes, bool nearest, bool is_signed) {
    if (is_double) {
        if (lanes == 8) return nearest ? In::x86_avx512_mask_cvtpd2dq_512 : In::x86_avx512_mask_cvttpd2dq_512;
        return nearest ? In::x86_avx_cvt_pd2dq_256 : In::x86_avx_cvtt_pd2dq_256;
    }
    if (!is_signed) return nearest ? In::x86_avx512_mask_cvtps2udq_512 : In::x86_avx512_mask_cvttps2udq_512;
    if (lanes == 16) return nearest ? In::x86_avx512_mask_cvtps2dq_512 : In::x86_avx512_mask_cvttps2dq_512;
    return nearest ? In::x86_avx_cvt_ps2dq_256 : In::x86_avx_cvtt_ps2dq_256;
}

Value* convert(Ir& ir, Value* chunk, bool nearest, bool is_signed) {
    const bool is_double = chunk->getType()->getScalarType()->isDoubleTy();
    const unsigned lanes = llvm::cast<llvm::FixedVectorType>(chunk->getType())->getNumElements();
    const In::ID instruction = instruction_for(is_double, lanes, nearest, is_signed);
    if (lanes * (is_double ? 64 : 32) < 512) return ir.CreateIntrinsic(instruction, {}, {chunk});
    Value* rest = llvm::Constant::getNullValue(typed(ir.getInt32Ty(), chunk));
    return ir.CreateIntrinsic(instruction, {},
                              {chunk, rest, ir.getIntN(lanes, ~0ull >> (64 - lanes)), ir.getInt32(current_rounding)});
}

/// NaN as zero; all else as it is. A mask would take longer to make than the conversion itself.
Value* nan_as_zero(Ir& ir, Value* chunk) {
    return ir.CreateIntrinsic(In::x86_avx512_mask_fixupimm_ps_512, {},
                              {chunk, chunk, integer(to_bits(ir, chunk), nan_as_zero_table), ir.getInt32(0),
                               ir.getInt16(0xffff), ir.getInt32(current_rounding)});
}

} // namespace

Value* convert_by_instruction(WarpEmitter& e, Value* value, bool nearest, bool is_signed) {
    const TargetCpu& target = e.options().target;
    const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
    const bool is_double = value->getType()->getScalarType()->isDoubleTy();
    if (target.architecture != TargetCpu::Architecture::x86_64 || !vector) return nullptr;
    if (!is_signed && (is_double || !target.avx512)) return nullptr;
    const unsigned natural = (target.avx512 ? 16 : 8) / (is_double ? 2 : 1);
    const bool wide = target.avx512 && (!is_signed || vector->getNumElements() >= natural);
    const unsigned lanes = wide ? natural : is_double ? 4 : 8;
    return in_chunks(e.ir(), {value}, lanes, [&](Ir& ir, Values v) -> Value* {
        Value* chunk = v[0];
        // Numbers that are too large give all ones, as wanted. The second operand of vmaxps counts for NaN.
        if (!is_signed) {
            chunk = ir.CreateSelect(ir.CreateFCmpOGT(chunk, real(chunk, 0)), chunk, real(chunk, 0));
            return convert(ir, chunk, nearest, is_signed);
        }
        // They give the lowest number, as NaN does, which is wanted of doubles only.
        const bool fixes = wide && !is_double;
        Value* result = convert(ir, fixes ? nan_as_zero(ir, chunk) : chunk, nearest, is_signed);
        if (!fixes && !is_double) result = ir.CreateSelect(ir.CreateFCmpORD(chunk, chunk), result, integer(result, 0));
        Value* too_large = ir.CreateFCmpOGE(chunk, real(chunk, nearest && is_double ? 0x1.fffffffep30 : 0x1p31));
        return ir.CreateSelect(too_large, integer(result, 0x7fffffff), result);
    });
}

} // namespace ptarmigan::translator::lower
