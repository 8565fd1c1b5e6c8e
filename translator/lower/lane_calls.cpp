// SPDX-License-Identifier: Apache-2.0
// Calls of fixed-width vector functions, see lane_calls.h.
#include "translator/lower/lane_calls.h"

#include "translator/llvm/sink_nan_canonicalization.h"
#include "translator/llvm/sve.h"

#include <numeric>

namespace ptarmigan::translator::lower {

namespace {

unsigned lane_count(Value* value) {
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
    return vector ? vector->getNumElements() : 0;
}

// Lanes [first, first + count) of a vector, unspecified beyond its end.
Value* slice(Ir& ir, Value* vector, unsigned first, unsigned count) {
    unsigned total = lane_count(vector);
    if (first == 0 && count == total) return vector;
    llvm::SmallVector<int, 32> lanes(count);
    for (unsigned i = 0; i < count; ++i) lanes[i] = first + i < total ? int(first + i) : -1;
    return ir.CreateShuffleVector(vector, lanes);
}

Value* concatenate(Ir& ir, llvm::SmallVector<Value*, 8> parts) {
    while (parts.size() > 1) {
        llvm::SmallVector<Value*, 8> joined;
        for (std::size_t i = 0; i < parts.size(); i += 2) {
            unsigned lanes = lane_count(parts[i]);
            llvm::SmallVector<int, 64> order(2 * lanes);
            std::iota(order.begin(), order.end(), 0);
            joined.push_back(ir.CreateShuffleVector(parts[i], parts[i + 1], order));
        }
        parts = joined;
    }
    return parts[0];
}

} // namespace

Value* in_chunks(Ir& ir, Values operands, unsigned lanes, const std::function<Value*(Ir&, Values)>& op) {
    unsigned total = lane_count(operands[0]);
    if (total == 0) { // scalars
        llvm::SmallVector<Value*, 4> vectors;
        for (Value* operand : operands) {
            Value* empty = llvm::PoisonValue::get(llvm::FixedVectorType::get(operand->getType(), lanes));
            vectors.push_back(ir.CreateInsertElement(empty, operand, std::uint64_t(0)));
        }
        return ir.CreateExtractElement(op(ir, vectors), std::uint64_t(0));
    }
    llvm::SmallVector<Value*, 8> results;
    for (unsigned first = 0; first < total; first += lanes) {
        llvm::SmallVector<Value*, 4> chunk;
        for (Value* operand : operands) chunk.push_back(slice(ir, operand, first, lanes));
        results.push_back(op(ir, chunk));
    }
    return slice(ir, concatenate(ir, results), 0, total);
}

Value* call_lanes(WarpEmitter& e, std::string_view name, Values operands, llvm::Type* result,
                  std::optional<unsigned> extra) {
    auto call = [&](Values arguments, llvm::Type* type, unsigned lanes) {
        llvm::SmallVector<Value*, 4> all(arguments.begin(), arguments.end());
        if (extra) all.push_back(e.ir().getInt32(*extra));
        std::string symbol = "ptm_" + std::string(name) + "_" + std::to_string(lanes);
        return e.call_builtin(symbol, type, all);
    };
    // Lanes at rest may hold poison, which must not become a table index.
    llvm::SmallVector<Value*, 4> frozen;
    for (Value* operand : operands) {
        frozen.push_back(e.ir().CreateFreeze(operand));
        // The model asks for no NaN's bits.
        auto* freeze = llvm::dyn_cast<llvm::FreezeInst>(frozen.back());
        if (freeze && operand->getType()->getScalarType()->isFloatTy() && !name.ends_with("_fast_f32"))
            freeze->setMetadata(any_nan_metadata, llvm::MDNode::get(freeze->getContext(), {}));
    }
    unsigned total = lane_count(frozen[0]);
    if (total == 0) return call(frozen, result, 1);
    // Double lanes take two registers where float lanes take one: halve the widest chunk. With AVX2 16 lanes are two
    // registers, for which the squarer of builtins/library/sfu_avx2.h does its work once.
    const TargetCpu& target = e.options().target;
    bool arm = target.architecture == TargetCpu::Architecture::aarch64;
    unsigned widest = !arm ? 16 : sve_bits(target) == 0 ? 4 : 8;
    if (operands[0]->getType()->getScalarSizeInBits() == 64) widest = 8;
    unsigned lanes = std::clamp(total, 4u, widest);
    return in_chunks(e.ir(), frozen, lanes,
                     [&](Ir&, Values chunk) { return call(chunk, llvm::FixedVectorType::get(result, lanes), lanes); });
}

} // namespace ptarmigan::translator::lower
