// SPDX-License-Identifier: Apache-2.0
#include "translator/emit/region_values.h"

#include "translator/analysis/arithmetic/canonical_nans.h"
#include "translator/emit/frame_words.h"
#include "translator/llvm/drop_unchanged_saves.h"
#include "translator/llvm/sink_nan_canonicalization.h"
#include "translator/lower/lane_math.h"

#include <stdexcept>

namespace ptarmigan::translator {

namespace {

bool is_mask_vector(const LaneValue& value) {
    return value.base->getType()->isVectorTy() && value.base->getType()->getScalarType()->isIntegerTy(1);
}

} // namespace

RegionValues::RegionValues(const FunctionGraph& graph, const RegionFrames& frames, KnownInSteps& known)
    : graph_(graph), frames_(frames), known_(known), canonical_nans_(canonical_nans(graph)) {}

LaneValue RegionValues::looked_up(GraphEmitter& emitter, ValueId id, llvm::GlobalVariable* masks) const {
    Ir& ir = emitter.ir();
    llvm::Value* at = ir.CreateInBoundsGEP(masks->getValueType(), masks, {ir.getInt32(0), emitter.step_index()});
    llvm::LoadInst* word = ir.CreateLoad(ir.getInt32Ty(), at);
    word->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(emitter.context(), {}));
    LaneValue value;
    value.shape = graph_.values[id].shape;
    value.base = value.shape.is_varying() ? emitter.from_bits(ir.CreateZExt(word, ir.getInt64Ty()))
                                          : ir.CreateTrunc(word, ir.getInt1Ty());
    return value;
}

void RegionValues::load(GraphEmitter& emitter, ValueId id, llvm::Value* frame, llvm::Value* cta_in) {
    const SsaValue& info = graph_.values[id];
    if (const auto& number = known_.number(id)) {
        LaneValue value;
        value.shape = info.shape;
        value.base = in_step(emitter.ir(), emitter.type(info.type), emitter.step_index(), *number);
        return emitter.set_live_in(id, value);
    }
    if (llvm::GlobalVariable* masks = known_.masks(id)) return emitter.set_live_in(id, looked_up(emitter, id, masks));
    auto found = frames_.values.find(id);
    if (found == frames_.values.end()) return; // constants and undefined values
    Ir& ir = emitter.ir();
    const RegionFrames::Place& place = found->second;
    llvm::Type* scalar = emitter.type(info.type);
    auto at = [&](llvm::Value* base, std::uint32_t offset) {
        return ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), base, offset);
    };
    auto load = [&](llvm::Value* address) -> llvm::Value* {
        if (!scalar->isIntegerTy(1)) return ir.CreateLoad(scalar, address);
        return ir.CreateTrunc(ir.CreateLoad(ir.getInt8Ty(), address), ir.getInt1Ty());
    };
    LaneValue value;
    value.shape = info.shape;
    if (place.in_cta_frame)
        value.base = from_word(ir, ir.CreateLoad(ir.getInt64Ty(), at(cta_in, place.offset * 8)), scalar);
    else if (info.shape.is_uniform() || info.shape.is_affine()) {
        value.base = load(at(frame, place.offset));
        if (info.shape.is_affine() && info.shape.steps) value.stride = load(at(frame, place.stride_offset));
    } else if (scalar->isIntegerTy(1)) {
        llvm::LoadInst* word = ir.CreateLoad(ir.getInt64Ty(), at(frame, place.offset));
        word->setMetadata(mask_word_metadata, llvm::MDNode::get(emitter.context(), {}));
        value.base = emitter.from_bits(word);
    } else {
        llvm::Type* lanes = emitter.lanes_type(scalar);
        value.base = ir.CreateAlignedLoad(lanes, at(frame, place.offset), lanes_alignment(lanes));
        if (saved_with_any_nan(id)) value.base = lower::canonicalize(ir, value.base);
    }
    emitter.set_live_in(id, value);
}

void RegionValues::save(GraphEmitter& emitter, ValueId id, BlockId barrier, llvm::Value* frame,
                        llvm::Value* cta_out) const {
    auto found = frames_.values.find(id);
    if (found == frames_.values.end()) return;
    Ir& ir = emitter.ir();
    const RegionFrames::Place& place = found->second;
    LaneValue value = emitter.value_in(barrier, id);
    const Shape& planned = graph_.values[id].shape;
    if (value.shape.is_varying() && !planned.is_varying())
        throw std::logic_error("a value became varying on its way to a barrier");
    auto at = [&](llvm::Value* base, std::uint32_t offset) {
        return ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), base, offset);
    };
    auto store = [&](llvm::Value* scalar, llvm::Value* address) {
        if (scalar->getType()->isIntegerTy(1)) scalar = ir.CreateZExt(scalar, ir.getInt8Ty());
        ir.CreateStore(scalar, address);
    };
    if (place.in_cta_frame)
        ir.CreateStore(to_word(ir, value.base), at(cta_out, place.offset * 8));
    else if (planned.is_uniform() || planned.is_affine()) {
        store(value.base, at(frame, place.offset));
        if (planned.is_affine() && planned.steps) store(value.stride, at(frame, place.stride_offset));
    } else if (is_mask_vector(value)) {
        ir.CreateStore(emitter.to_bits(value.base), at(frame, place.offset))
            ->setMetadata(mask_word_metadata, llvm::MDNode::get(emitter.context(), {}));
    } else {
        llvm::Instruction* save =
            ir.CreateAlignedStore(value.base, at(frame, place.offset), lanes_alignment(value.base->getType()));
        if (saved_with_any_nan(id)) save->setMetadata(any_nan_metadata, llvm::MDNode::get(emitter.context(), {}));
    }
}

bool RegionValues::saved_with_any_nan(ValueId id) const {
    const SsaValue& info = graph_.values[id];
    return info.type == ptx::ScalarType::f32 && info.shape.is_varying() && canonical_nans_[id];
}

} // namespace ptarmigan::translator
