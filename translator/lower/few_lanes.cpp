// SPDX-License-Identifier: Apache-2.0
#include "translator/lower/few_lanes.h"

#include "translator/llvm/long_code.h"
#include "translator/lower/access_mark.h"
#include "translator/lower/lane_array.h"
#include "translator/lower/lane_math.h"
#include "translator/lower/lane_pointers.h"

namespace ptarmigan::translator::lower {

using llvm::Value;

namespace {

/// Of a part, so many lanes are quicker one by one.
constexpr unsigned part_of_lanes = 4;

/// The lanes' constant distance, if each is as far from the one before it as the next.
std::optional<std::int64_t> common_step(const LaneOffsets* offsets) {
    if (!offsets || offsets->size() < 2) return 0;
    const std::int64_t step = (*offsets)[1] - (*offsets)[0];
    for (std::size_t lane = 1; lane < offsets->size(); ++lane)
        if ((*offsets)[lane] - (*offsets)[lane - 1] != step) return std::nullopt;
    return step;
}

/// Addresses of single lanes, which are known at run time.
class LanePlaces {
public:
    LanePlaces(WarpEmitter& e, const LanePart& part) : e_(e), part_(part) {
        const LaneValue& address = part.access.address.address;
        offset_step_ =
            address.is_affine() && !part.access.address.guard ? common_step(address.shape.offsets) : std::nullopt;
        stride_step_ = address.stride ? common_step(address.shape.steps) : 0;
        if (!(offset_step_ && stride_step_))
            addresses_.emplace(e, cut_lanes(e.ir(), e.broadcast(address), part.first, part.count));
    }

    Value* of(Value* lane) const {
        Ir& ir = e_.ir();
        if (addresses_) return behind(addresses_->get(lane));
        const LaneValue& address = part_.access.address.address;
        Value* number = ir.CreateAdd(ir.CreateZExt(lane, ir.getInt64Ty()), ir.getInt64(part_.first));
        Value* at = ir.CreateAdd(address.base, ir.CreateMul(number, ir.getInt64(std::uint64_t(*offset_step_))));
        if (address.stride && *stride_step_)
            at = ir.CreateAdd(
                at, ir.CreateMul(ir.CreateMul(number, ir.getInt64(std::uint64_t(*stride_step_))), address.stride));
        return behind(at);
    }

private:
    Value* behind(Value* address) const {
        Value* at = pointer(e_, address);
        return part_.offset ? e_.ir().CreateConstGEP1_64(e_.ir().getInt8Ty(), at, part_.offset) : at;
    }

    WarpEmitter& e_;
    const LanePart& part_;
    std::optional<std::int64_t> offset_step_, stride_step_;
    std::optional<LaneArray> addresses_;
};

Value* bits_of(WarpEmitter& e, const LanePart& part) {
    Ir& ir = e.ir();
    Value* bits = part.first ? ir.CreateLShr(e.active_bits(), part.first) : e.active_bits();
    return part.count < 64 ? ir.CreateAnd(bits, ir.getInt64((std::uint64_t{1} << part.count) - 1)) : bits;
}

Value* are_few(WarpEmitter& e, const LanePart& part, Value* bits) {
    Value* number = e.ir().CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, bits);
    return e.ir().CreateICmpULE(number, e.ir().getInt64(part.count / part_of_lanes));
}

/// Lane `lane` of the part as a lane of the step.
Value* lane_of_step(WarpEmitter& e, const LanePart& part, Value* lane) {
    return part.first ? e.ir().CreateAdd(lane, e.ir().getInt32(part.first)) : lane;
}

} // namespace

bool asks_for_few_lanes(WarpEmitter& e) {
    // With gathers, what is alive over many joins is moved about and spilled.
    constexpr unsigned most_accesses = 16;
    const TargetCpu& target = e.options().target;
    return (target.avx512 ? e.accesses_of_block() <= most_accesses : has_avx2(target)) && e.width() >= 16 &&
           !e.all_active() && e.options().optimization != Optimization::least && !is_long_code(e.module());
}

Value* load_few_or(WarpEmitter& e, const LanePart& part, llvm::function_ref<Value*()> gather) {
    Ir& ir = e.ir();
    llvm::Type* type = ir.getIntNTy(part.word * 8);
    Value* bits = bits_of(e, part);
    const auto load_few = [&]() -> Value* {
        const LanePlaces places(e, part);
        Value* nothing = llvm::Constant::getNullValue(llvm::FixedVectorType::get(type, part.count));
        return e.for_each_lane(bits, nothing, [&](Value* lane) -> Value* {
            const AccessMark mark(e, note_lane(e, lane_of_step(e, part, lane)));
            llvm::LoadInst* load = ir.CreateAlignedLoad(type, places.of(lane), part.alignment);
            tag_space(e, load, part.space);
            return load;
        });
    };
    return e.if_else(
        are_few(e, part, bits), load_few, [&] { return gather(); }, /*odds=*/0);
}

void store_few_or(WarpEmitter& e, const LanePart& part, Value* words, llvm::function_ref<void()> scatter) {
    Ir& ir = e.ir();
    Value* bits = bits_of(e, part);
    const auto store_few = [&]() -> Value* {
        const LanePlaces places(e, part);
        const LaneArray values(e, words);
        e.for_each_lane(bits, [&](Value* lane) {
            const AccessMark mark(e, note_lane(e, lane_of_step(e, part, lane)));
            tag_space(e, ir.CreateAlignedStore(values.get(lane), places.of(lane), part.alignment), part.space);
        });
        return nullptr;
    };
    const auto store_many = [&]() -> Value* { return scatter(), nullptr; };
    e.if_else(are_few(e, part, bits), store_few, store_many, /*odds=*/0);
}

} // namespace ptarmigan::translator::lower
