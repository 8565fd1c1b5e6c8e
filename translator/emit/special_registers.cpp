// SPDX-License-Identifier: Apache-2.0
// Special registers (manual chapter 10). Block dimensions are compile-time constants; the thread index follows from
// the step's number.
#include "frontend/isa/special_registers.h"
#include "translator/any_cluster.h"
#include "translator/emit/graph_emitter.h"
#include "translator/kernel_abi.h"

#include <fmt/format.h>

namespace ptarmigan::translator {

using ptx::SpecialRegister;

/// %tid.x/.y/.z of the lanes; in the planned affine or uniform form if `planned` is given, else as lanes or uniform.
LaneValue GraphEmitter::thread_coordinate(unsigned component, const Shape* planned) {
    const auto& ntid = unit_.shape.ntid;
    auto coordinate = [&](llvm::Value* thread) -> llvm::Value* {
        auto constant = [&](std::uint32_t number) { return constant_like(ir_.getInt32Ty(), number, thread); };
        if (component == 0) return ir_.CreateURem(thread, constant(ntid[0]));
        if (component == 1) return ir_.CreateURem(ir_.CreateUDiv(thread, constant(ntid[0])), constant(ntid[1]));
        return ir_.CreateUDiv(thread, constant(ntid[0] * ntid[1]));
    };
    if (component > 2 || ntid[component] == 1) return LaneValue::uniform(ir_.getInt32(0));
    if (width_ == 1 || (planned && !planned->is_varying())) {
        LaneValue value = LaneValue::uniform(coordinate(first_thread()));
        if (planned) value.shape = *planned;
        return value;
    }
    return LaneValue::varying(coordinate(ir_.CreateAdd(splat(first_thread()), lane_numbers(ir_.getInt32Ty()))));
}

LaneValue GraphEmitter::special_register(const ptx::Operand& operand, const Shape* planned) {
    llvm::Type* i32 = ir_.getInt32Ty();
    auto constant = [&](std::uint32_t value) { return LaneValue::uniform(ir_.getInt32(value)); };
    auto field = [&](unsigned offset, const char* name) {
        return LaneValue::uniform(context_field(i32, offset, name));
    };
    auto component3 = [&](unsigned offset, const char* name, std::uint32_t fourth) {
        if (offset == offsetof(abi::CtaContext, ctaid) && operand.component == 0 && interface_->ctaid_x)
            return LaneValue::uniform(interface_->ctaid_x);
        return operand.component > 2 ? constant(fourth) : field(offset + 4 * operand.component, name);
    };
    auto lane_in_warp = [&](const Shape* shape) {
        llvm::Value* first = ir_.CreateAnd(first_thread(), ir_.getInt32(31));
        if (width_ == 1 || (shape && !shape->is_varying())) {
            LaneValue value = LaneValue::uniform(first);
            if (shape) value.shape = *shape;
            return value;
        }
        return LaneValue::varying(ir_.CreateAdd(splat(first), lane_numbers(i32)));
    };
    auto lane_mask = [&](const std::function<llvm::Value*(llvm::Value*)>& mask_of) {
        return apply({lane_in_warp(nullptr)}, [&](Ir&, Values v) { return mask_of(v[0]); });
    };
    auto one = [&](llvm::Value* lane) { return ir_.CreateShl(constant_like(i32, 1, lane), lane); };
    auto clock = [&](unsigned offset, unsigned shift, bool narrow) {
        llvm::Value* ticks = call_service(offset, ir_.getInt64Ty(), {cta_context_});
        if (shift) ticks = ir_.CreateLShr(ticks, ir_.getInt64(shift));
        return LaneValue::uniform(narrow ? ir_.CreateTrunc(ticks, i32) : ticks);
    };
    auto of_launch = [&](llvm::Type* type, std::size_t offset, const char* name) {
        llvm::Value* launch = context_field(ir_.getPtrTy(), offsetof(abi::CtaContext, launch), "launch");
        return ir_.CreateLoad(type, ir_.CreateConstInBoundsGEP1_64(ir_.getInt8Ty(), launch, offset), name);
    };
    auto cluster = [&](unsigned component) -> llvm::Value* {
        if (component > 2) return ir_.getInt32(1);
        if (unit_.shape.cluster != any_cluster) return ir_.getInt32(unit_.shape.cluster[component]);
        return of_launch(i32, offsetof(abi::LaunchContext, ncluster) + sizeof(std::uint32_t) * component, "ncluster");
    };
    // Clusters tile the grid: %ctaid = %clusterid * %cluster_nctaid + %cluster_ctaid.
    auto per_cluster = [&](unsigned offset, const char* name, std::uint32_t beyond, bool remainder) {
        LaneValue value = component3(offset, name, beyond);
        if (operand.component > 2) return value;
        llvm::Value* extent = cluster(operand.component);
        value.base = remainder ? ir_.CreateURem(value.base, extent) : ir_.CreateUDiv(value.base, extent);
        return value;
    };

    switch (SpecialRegister(operand.index)) {
    case SpecialRegister::tid: return thread_coordinate(operand.component, planned);
    case SpecialRegister::ntid: return constant(operand.component > 2 ? 1 : unit_.shape.ntid[operand.component]);
    case SpecialRegister::ctaid: return component3(offsetof(abi::CtaContext, ctaid), "ctaid", 0);
    case SpecialRegister::nctaid: return component3(offsetof(abi::CtaContext, nctaid), "nctaid", 1);
    case SpecialRegister::laneid: return lane_in_warp(planned);
    case SpecialRegister::warpid: return LaneValue::uniform(ir_.CreateLShr(first_thread(), ir_.getInt32(5)));
    case SpecialRegister::nwarpid: return constant(64); // warp slots of a multiprocessor, as the hardware says
    case SpecialRegister::smid: return field(offsetof(abi::CtaContext, smid), "smid");
    case SpecialRegister::nsmid:
        return LaneValue::uniform(of_launch(i32, offsetof(abi::LaunchContext, nsmid), "nsmid"));
    case SpecialRegister::gridid:
        return LaneValue::uniform(of_launch(ir_.getInt64Ty(), offsetof(abi::LaunchContext, grid_id), "gridid"));
    case SpecialRegister::envreg: { // written by the driver: 1 and 2 hold the address of a cooperative grid's workspace
        if (operand.component != 1 && operand.component != 2) return constant(0);
        llvm::Value* address =
            of_launch(ir_.getInt64Ty(), offsetof(abi::LaunchContext, grid_workspace), "grid.workspace");
        if (operand.component == 1) address = ir_.CreateLShr(address, 32);
        return LaneValue::uniform(ir_.CreateTrunc(address, i32));
    }
    case SpecialRegister::lanemask_eq: return lane_mask([&](llvm::Value* lane) { return one(lane); });
    case SpecialRegister::lanemask_lt:
        return lane_mask([&](llvm::Value* lane) { return ir_.CreateSub(one(lane), constant_like(i32, 1, lane)); });
    case SpecialRegister::lanemask_le:
        return lane_mask([&](llvm::Value* lane) {
            return ir_.CreateOr(one(lane), ir_.CreateSub(one(lane), constant_like(i32, 1, lane)));
        });
    case SpecialRegister::lanemask_ge: return lane_mask([&](llvm::Value* lane) { return ir_.CreateNeg(one(lane)); });
    case SpecialRegister::lanemask_gt:
        return lane_mask([&](llvm::Value* lane) { return ir_.CreateXor(ir_.CreateNeg(one(lane)), one(lane)); });
    case SpecialRegister::clock: return clock(offsetof(abi::Services, clock), 0, true);
    case SpecialRegister::clock_hi: return clock(offsetof(abi::Services, clock), 32, true);
    case SpecialRegister::clock64: return clock(offsetof(abi::Services, clock), 0, false);
    case SpecialRegister::globaltimer: return clock(offsetof(abi::Services, globaltimer), 0, false);
    case SpecialRegister::globaltimer_lo: return clock(offsetof(abi::Services, globaltimer), 0, true);
    case SpecialRegister::globaltimer_hi: return clock(offsetof(abi::Services, globaltimer), 32, true);
    case SpecialRegister::pm: return constant(0); // undefined by the manual; no profiler counts here
    case SpecialRegister::pm_64: return LaneValue::uniform(ir_.getInt64(0));
    case SpecialRegister::dynamic_smem_size: return field(offsetof(abi::CtaContext, dynamic_shared), "dynamic.smem");
    case SpecialRegister::total_smem_size:  // in units of 128 bytes, without what the system reserves
    case SpecialRegister::aggr_smem_size: { // to the byte, with it (H100: 1000 bytes asked for give 1024 and 2024)
        LaneValue size = field(offsetof(abi::CtaContext, shared_size), "shared.size");
        if (SpecialRegister(operand.index) == SpecialRegister::aggr_smem_size)
            size.base = ir_.CreateAdd(size.base, ir_.getInt32(reserved_shared_bytes));
        else
            size.base = ir_.CreateAnd(ir_.CreateAdd(size.base, ir_.getInt32(127)), ir_.getInt32(~127u));
        return size;
    }
    case SpecialRegister::reserved_smem_offset_cap: return constant(reserved_shared_bytes);
    case SpecialRegister::reserved_smem_offset_begin:
    case SpecialRegister::reserved_smem_offset_end:
    case SpecialRegister::reserved_smem_offset: { // cooperative_groups keeps what its larger tiles share at offset 1
        constexpr std::uint32_t used = 288;       // as driver 580 leaves it
        unit_.reserved_shared = true;
        LaneValue place = field(offsetof(abi::CtaContext, shared_size), "shared.size");
        const bool end = SpecialRegister(operand.index) == SpecialRegister::reserved_smem_offset_end;
        llvm::Value* behind = ir_.CreateAnd(ir_.CreateAdd(place.base, ir_.getInt32(127)), ir_.getInt32(~127u));
        place.base = end ? ir_.CreateAdd(behind, ir_.getInt32(used)) : behind;
        return place;
    }
    case SpecialRegister::current_graph_exec: return LaneValue::uniform(ir_.getInt64(0)); // launches are not of graphs
    case SpecialRegister::is_explicit_cluster: {
        if (unit_.cluster_size() != 1) return LaneValue::uniform(ir_.getTrue());
        llvm::Value* is_explicit = of_launch(i32, offsetof(abi::LaunchContext, explicit_cluster), "explicit");
        return LaneValue::uniform(ir_.CreateICmpNE(is_explicit, ir_.getInt32(0)));
    }
    case SpecialRegister::cluster_nctaid: return LaneValue::uniform(cluster(operand.component));
    case SpecialRegister::cluster_nctarank:
        return LaneValue::uniform(ir_.CreateMul(ir_.CreateMul(cluster(0), cluster(1)), cluster(2)));
    case SpecialRegister::cluster_ctarank: return field(offsetof(abi::CtaContext, cluster_ctarank), "ctarank");
    case SpecialRegister::cluster_ctaid: return per_cluster(offsetof(abi::CtaContext, ctaid), "ctaid", 0, true);
    case SpecialRegister::clusterid: return per_cluster(offsetof(abi::CtaContext, ctaid), "ctaid", 0, false);
    case SpecialRegister::nclusterid: return per_cluster(offsetof(abi::CtaContext, nctaid), "nctaid", 1, false);
    default:
        unsupported(fmt::format("special register {}",
                                ptx::special_register_text(SpecialRegister(operand.index), operand.component)));
    }
}

} // namespace ptarmigan::translator
