// SPDX-License-Identifier: Apache-2.0
#include "translator/lower/atomic_runs.h"

#include "translator/lower/access_mark.h"
#include "translator/lower/lane_array.h"
#include "translator/lower/memory_access.h"

namespace ptarmigan::translator::lower {

namespace {

/// What one locked instruction swaps.
constexpr unsigned granule_bytes = 16;

bool is_worth_asking(WarpEmitter& e, const AtomicAccess& access) {
    const CompileOptions& options = e.options();
    const unsigned bits = access.operation.bits();
    // Integers are added by one instruction of the CPU's, which always succeeds.
    if (access.private_memory || !access.operation.is_float() || bits > 64 || e.width() < 8 ||
        options.optimization == Optimization::least || options.target.architecture != TargetCpu::Architecture::x86_64)
        return false;
    const LaneValue& address = access.address.address;
    if (!address.is_affine() || address.stride || access.address.guard) return !address.is_uniform();
    const LaneOffsets& offsets = *address.shape.offsets;
    for (std::size_t lane = 1; lane < offsets.size(); ++lane)
        if (offsets[lane] - offsets[lane - 1] == std::int64_t(bits / 8)) return true;
    return false;
}

class RunsOfLanes {
public:
    RunsOfLanes(WarpEmitter& e, const AtomicAccess& access)
        : e_(e), ir_(e.ir()), access_(access), bytes_(access.operation.bits() / 8), count_(granule_bytes / bytes_) {}

    /// The lanes, a bit each, that follow the one before them in its 16 bytes.
    Value* following() {
        addresses_ = e_.broadcast(access_.address.address);
        llvm::SmallVector<int, 32> mask{0};
        for (unsigned lane = 1; lane < e_.width(); ++lane) mask.push_back(int(lane) - 1);
        Value* before = ir_.CreateShuffleVector(addresses_, mask);
        Value* is_next = ir_.CreateICmpEQ(addresses_, ir_.CreateAdd(before, integer(before, bytes_)));
        Value* place = ir_.CreateAnd(addresses_, integer(addresses_, granule_bytes - 1));
        Value* follows = e_.to_bits(ir_.CreateAnd(is_next, ir_.CreateICmpNE(place, integer(place, 0))));
        active_ = e_.active_bits();
        return ir_.CreateAnd(follows, ir_.CreateAnd(active_, ir_.CreateShl(active_, 1)));
    }

    void perform(Value* following) {
        const LaneArray address_array(e_, addresses_);
        llvm::IntegerType* element = ir_.getIntNTy(access_.operation.bits());
        // With room for a granule before and behind the lanes', of which nobody looks at what is there.
        const unsigned margin = count_ - 1;
        llvm::AllocaInst* values = nullptr;
        if (!access_.b.is_uniform()) {
            values = e_.entry_alloca(llvm::ArrayType::get(element, e_.width() + 2 * margin), "runs");
            ir_.CreateAlignedStore(e_.broadcast(access_.b), ir_.CreateConstInBoundsGEP1_64(element, values, margin),
                                   llvm::Align(bytes_));
        }
        Value* starts = ir_.CreateAnd(active_, ir_.CreateNot(following));
        e_.for_each_lane(starts, [&](Value* lane) {
            const AccessMark mark(e_, note_lane(e_, lane));
            Value* address = address_array.get(lane);
            Value* wide = ir_.CreateZExt(lane, ir_.getInt64Ty());
            Value* behind = ir_.CreateLShr(following, ir_.CreateAdd(wide, ir_.getInt64(1)));
            Value* more = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, ir_.CreateNot(behind), ir_.getTrue());
            Value* first =
                ir_.CreateUDiv(ir_.CreateAnd(address, ir_.getInt64(granule_bytes - 1)), ir_.getInt64(bytes_));
            Value* b =
                values ? load_values(element, values, ir_.CreateSub(ir_.CreateAdd(wide, ir_.getInt64(margin)), first))
                       : ir_.CreateVectorSplat(count_, access_.b.base);
            swap(address, b, are_between(first, ir_.CreateAdd(first, more)));
        });
    }

private:
    Value* load_values(llvm::Type* element, Value* values, Value* index) {
        return ir_.CreateAlignedLoad(llvm::FixedVectorType::get(element, count_),
                                     ir_.CreateInBoundsGEP(element, values, index), llvm::Align(bytes_));
    }

    /// <count x i1>: elements `first` to `last`.
    Value* are_between(Value* first, Value* last) {
        llvm::IntegerType* type = ir_.getIntNTy(bytes_ * 8);
        llvm::SmallVector<llvm::Constant*, 8> numbers;
        for (unsigned i = 0; i < count_; ++i) numbers.push_back(llvm::ConstantInt::get(type, i));
        Value* number = llvm::ConstantVector::get(numbers);
        const auto splat = [&](Value* value) { return ir_.CreateVectorSplat(count_, ir_.CreateTrunc(value, type)); };
        return ir_.CreateAnd(ir_.CreateICmpUGE(number, splat(first)), ir_.CreateICmpULE(number, splat(last)));
    }

    void swap(Value* address, Value* b, Value* takes_part) {
        Value* at =
            ir_.CreateIntToPtr(ir_.CreateAnd(address, ir_.getInt64(~std::uint64_t{granule_bytes - 1})), ir_.getPtrTy());
        Value* shared = shared_condition(e_, access_, address);
        const llvm::Align alignment(granule_bytes);
        llvm::Type* whole = ir_.getInt128Ty();
        // Whatever it finds, the swap compares.
        Value* first = ir_.CreateAlignedLoad(b->getType(), at, alignment, /*isVolatile=*/true);
        llvm::BasicBlock* before = ir_.GetInsertBlock();
        llvm::BasicBlock* loop = e_.new_block("run.loop");
        llvm::BasicBlock* done = e_.new_block("run.done");
        ir_.CreateBr(loop);
        ir_.SetInsertPoint(loop);
        llvm::PHINode* old = ir_.CreatePHI(b->getType(), 2);
        old->addIncoming(first, before);
        Value* next = ir_.CreateSelect(takes_part, combine(e_, access_.operation, old, b, nullptr, shared), old);
        Value* pair = ir_.CreateAtomicCmpXchg(at, ir_.CreateBitCast(old, whole), ir_.CreateBitCast(next, whole),
                                              alignment, access_.ordering, llvm::AtomicOrdering::Monotonic);
        Value* found = ir_.CreateBitCast(ir_.CreateExtractValue(pair, 0), b->getType());
        old->addIncoming(found, ir_.GetInsertBlock());
        ir_.CreateCondBr(ir_.CreateExtractValue(pair, 1), done, loop);
        ir_.SetInsertPoint(done);
    }

    WarpEmitter& e_;
    Ir& ir_;
    const AtomicAccess& access_;
    const unsigned bytes_, count_; ///< of an element; elements in a granule
    Value *addresses_ = nullptr, *active_ = nullptr;
};

} // namespace

bool do_in_runs(WarpEmitter& e, const AtomicAccess& access, llvm::function_ref<void()> lane_by_lane) {
    if (!is_worth_asking(e, access)) return false;
    Ir& ir = e.ir();
    RunsOfLanes runs(e, access);
    Value* following = runs.following();
    e.if_else_list(
        ir.CreateICmpNE(following, ir.getInt64(0)),
        [&]() -> ValueList {
            runs.perform(following);
            return {};
        },
        [&]() -> ValueList {
            lane_by_lane();
            return {};
        });
    return true;
}

} // namespace ptarmigan::translator::lower
