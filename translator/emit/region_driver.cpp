// SPDX-License-Identifier: Apache-2.0
#include "translator/emit/region_driver.h"

#include "translator/analysis/graph/form_queries.h"
#include "translator/emit/lane_regions.h"
#include "translator/emit/warp_emitter.h"
#include "translator/jit/image.h"
#include "translator/kernel_abi.h"
#include "translator/llvm/step_loops.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/MDBuilder.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace ptarmigan::translator {

namespace {

/// A single step keeps its frame on the stack up to this size, where it becomes registers.
constexpr std::uint32_t stack_frame_limit = 16384;
/// Barriers that a CTA passes from one turn of other CTAs to the next, in loops that wait and elsewhere: a loop may
/// wait by looking once between two barriers, and not be known to. Powers of two.
constexpr std::uint32_t barriers_per_look = 8, barriers_per_turn = 64;

class RegionDriver {
public:
    RegionDriver(KernelUnit& unit, const FunctionGraph& graph, const RegionPlan& plan,
                 const std::vector<llvm::Function*>& functions)
        : unit_(unit), graph_(graph), plan_(plan), functions_(functions) {}

    void emit() {
        llvm::LLVMContext& context = unit_.context;
        auto* pointer = llvm::PointerType::get(context, 0);
        auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer}, false);
        llvm::Function* function = unit_.create_function(type, entry_symbol, llvm::Function::ExternalLinkage);
        llvm::Value* cta = function->getArg(0);
        Ir ir(llvm::BasicBlock::Create(context, "entry", function));
        ir.SetCurrentDebugLocation(unit_.location(function, graph_.module->functions[graph_.function].location));
        llvm::Type* slots = llvm::ArrayType::get(ir.getInt64Ty(), std::max(1u, plan_.frames.cta_slots));
        llvm::AllocaInst* cta_in = ir.CreateAlloca(slots, nullptr, "cta.in");
        llvm::AllocaInst* cta_out = ir.CreateAlloca(slots, nullptr, "cta.out");
        std::uint32_t steps = unit_.step_count();
        llvm::Value* frames;
        if (steps == 1 && plan_.frames.step_size <= stack_frame_limit) {
            auto* local = ir.CreateAlloca(llvm::ArrayType::get(ir.getInt8Ty(), std::max(64u, plan_.frames.step_size)),
                                          nullptr, "frame");
            local->setAlignment(llvm::Align(64));
            frames = local;
        } else {
            frames = ir.CreateLoad(
                pointer, ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), cta, offsetof(abi::CtaContext, frames)),
                "frames");
        }
        llvm::AllocaInst* next_region = ir.CreateAlloca(ir.getInt32Ty(), nullptr, "next.region");
        llvm::AllocaInst* passed = ir.CreateAlloca(ir.getInt32Ty(), nullptr, "barriers.passed");
        ir.CreateStore(ir.getInt32(0), passed);
        llvm::BasicBlock* done = llvm::BasicBlock::Create(context, "done", function);
        llvm::BasicBlock* choose = llvm::BasicBlock::Create(context, "choose", function);
        std::vector<llvm::BasicBlock*> starts;
        for (std::size_t region = 0; region < functions_.size(); ++region)
            starts.push_back(llvm::BasicBlock::Create(context, fmt::format("interval{}", region), function));
        ir.CreateBr(starts[0]);
        for (std::size_t region = 0; region < functions_.size(); ++region) {
            ir.SetInsertPoint(starts[region]);
            if (region > 0 && unit_.gives_turns) emit_barrier_passed(ir, function, region, cta, passed);
            ir.CreateStore(ir.getInt32(0), next_region);
            emit_step_loop(ir, function, region, cta, frames, cta_in, cta_out, next_region);
            if (ends_the_kernel(region)) {
                ir.CreateBr(done);
                continue;
            }
            for (std::uint32_t slot = 0; slot < plan_.frames.cta_slots; ++slot) {
                llvm::Value* from = ir.CreateConstInBoundsGEP1_64(ir.getInt64Ty(), cta_out, slot);
                ir.CreateStore(ir.CreateLoad(ir.getInt64Ty(), from),
                               ir.CreateConstInBoundsGEP1_64(ir.getInt64Ty(), cta_in, slot));
            }
            const std::optional<std::size_t> following = only_successor(region);
            ir.CreateBr(following ? starts[*following] : choose);
        }
        ir.SetInsertPoint(choose);
        llvm::SwitchInst* dispatch =
            ir.CreateSwitch(ir.CreateLoad(ir.getInt32Ty(), next_region), done, unsigned(starts.size()));
        for (std::size_t region = 1; region < starts.size(); ++region)
            dispatch->addCase(ir.getInt32(std::uint32_t(region)), starts[region]);
        ir.SetInsertPoint(done);
        ir.CreateRetVoid();
    }

private:
    /// No barrier lies ahead.
    bool ends_the_kernel(std::size_t region) const {
        const RegionView& v = plan_.view(region);
        return std::none_of(v.blocks.begin(), v.blocks.end(), [&](BlockId block) { return is_cut(v, block); });
    }

    /// The region behind the only barrier that steps can come to from `region`, if they can't exit instead. Then nobody
    /// has to ask which one it was. Not where barriers lie in loops: what is the same in the CTA is then kept over all
    /// of them, and spilled (smith_waterman of bench/algorithms is 10 % slower).
    std::optional<std::size_t> only_successor(std::size_t region) const {
        if (plan_.view(region).contains[graph_.exit_block]) return std::nullopt;
        std::optional<std::size_t> result;
        for (std::size_t next = 1; next < functions_.size(); ++next) {
            if (graph_.forest.loop_of[plan_.barriers.resume_of[next]] != no_loop) return std::nullopt;
            if (!is_cut(plan_.view(region), plan_.barriers.resume_of[next])) continue;
            if (result) return std::nullopt;
            result = next;
        }
        return result;
    }

    /// Of the barrier in front of a region, in the PTX text.
    std::uint32_t barrier_line(std::size_t region) const {
        const auto& instructions = graph_.blocks[plan_.barriers.resume_of[region]].instructions;
        const auto barrier = std::find_if(instructions.rbegin(), instructions.rend(),
                                          [](const GraphInstruction& each) { return is_cta_barrier(each.inst); });
        return barrier == instructions.rend() ? 0 : barrier->inst.location.line;
    }

    /// The line of the barrier at which steps of `region` have ended, as `next_region` says; 0 if none has.
    llvm::Value* barrier_line_behind(Ir& ir, std::size_t region, llvm::Value* next_region) const {
        llvm::Value* next = ir.CreateLoad(ir.getInt32Ty(), next_region);
        llvm::Value* line = ir.getInt64(0);
        for (std::size_t other = 1; other < functions_.size(); ++other)
            if (is_cut(plan_.view(region), plan_.barriers.resume_of[other]))
                line = ir.CreateSelect(ir.CreateICmpEQ(next, ir.getInt32(std::uint32_t(other))),
                                       ir.getInt64(barrier_line(other)), line);
        return line;
    }

    /// Other CTAs have their turn. `line`: as yield() takes it.
    static void call_yield(Ir& ir, llvm::Value* cta, llvm::Value* line) {
        const auto at = [&](llvm::Value* base, std::uint64_t offset) {
            return ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), base, offset);
        };
        llvm::Value* services = ir.CreateLoad(ir.getPtrTy(), at(cta, offsetof(abi::CtaContext, services)));
        llvm::Value* yield = ir.CreateLoad(ir.getPtrTy(), at(services, offsetof(abi::Services, yield)));
        auto* type = llvm::FunctionType::get(ir.getVoidTy(),
                                             {ir.getPtrTy(), ir.getInt32Ty(), ir.getInt64Ty(), ir.getInt64Ty()}, false);
        ir.CreateCall(type, yield, {cta, ir.getInt32(abi::whole_cta), line, ir.getInt64(0)});
    }

    /// In front of a region: what GraphEmitter::mark_work() does at barriers of the fiber form, and a turn for others
    /// behind every so many.
    void emit_barrier_passed(Ir& ir, llvm::Function* function, std::size_t region, llvm::Value* cta,
                             llvm::AllocaInst* passed) {
        const std::uint32_t loop = graph_.forest.loop_of[plan_.barriers.resume_of[region]];
        const bool waits = loop != no_loop && graph_.forest.loops[loop].waits_in_turns;
        if (!waits)
            ir.CreateStore(ir.getInt32(~0u),
                           ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), cta, offsetof(abi::CtaContext, worked)));
        llvm::Value* count = ir.CreateLoad(ir.getInt32Ty(), passed);
        ir.CreateStore(ir.CreateAdd(count, ir.getInt32(1)), passed);
        const std::uint32_t period = waits ? barriers_per_look : barriers_per_turn;
        llvm::BasicBlock* turn = llvm::BasicBlock::Create(ir.getContext(), "turn", function);
        llvm::BasicBlock* on = llvm::BasicBlock::Create(ir.getContext(), "on", function);
        llvm::Value* due = ir.CreateICmpEQ(ir.CreateAnd(count, ir.getInt32(period - 1)), ir.getInt32(period - 1));
        ir.CreateCondBr(due, turn, on, llvm::MDBuilder(ir.getContext()).createUnlikelyBranchWeights());
        ir.SetInsertPoint(turn);
        call_yield(ir, cta, ir.getInt64(barrier_line(region)));
        ir.CreateBr(on);
        ir.SetInsertPoint(on);
    }

    /// Where all steps that have stopped wait. The block where it ends.
    llvm::BasicBlock* emit_turn_of_others(Ir& ir, llvm::Function* function, std::size_t region, llvm::Value* cta,
                                          llvm::AllocaInst* walkers, llvm::Value* next_region) const {
        llvm::BasicBlock* turn = llvm::BasicBlock::Create(ir.getContext(), "turn", function);
        llvm::BasicBlock* on = llvm::BasicBlock::Create(ir.getContext(), "on", function);
        llvm::Value* count = ir.CreateLoad(ir.getInt32Ty(), walkers);
        ir.CreateStore(ir.getInt32(0), walkers);
        ir.CreateCondBr(ir.CreateICmpEQ(count, ir.getInt32(0)), turn, on);
        ir.SetInsertPoint(turn);
        call_yield(ir, cta, barrier_line_behind(ir, region, next_region));
        ir.CreateBr(on);
        ir.SetInsertPoint(on);
        return on;
    }

    /// Not a word that a kernel names: accesses of its spaces (lower::tag_space) are elsewhere.
    static void mark_as_own(llvm::Instruction* access) {
        llvm::MDBuilder builder(access->getContext());
        llvm::MDNode* type = builder.createTBAAScalarTypeNode("context", builder.createTBAARoot("ptarmigan"));
        access->setMetadata(llvm::LLVMContext::MD_tbaa, builder.createTBAAStructTagNode(type, type, 0));
    }

    /// The step of all CTAs that run together. What a fault is reported with is in the context.
    llvm::Value* emit_row(Ir& ir, llvm::Function* function, llvm::ArrayRef<llvm::Value*> arguments) {
        llvm::LLVMContext& context = unit_.context;
        llvm::Value* cta = arguments[0];
        auto field = [&](std::uint64_t offset) { return ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), cta, offset); };
        const auto ctaid = offsetof(abi::CtaContext, ctaid), linear = offsetof(abi::CtaContext, linear_ctaid);
        if (!row_.first) {
            const Ir::InsertPointGuard guard(ir);
            llvm::BasicBlock& entry = function->getEntryBlock();
            ir.SetInsertPoint(entry.getTerminator());
            auto load = [&](llvm::Type* type, std::uint64_t offset, const char* name) {
                llvm::LoadInst* value = ir.CreateLoad(type, field(offset), name);
                mark_as_own(value);
                return value;
            };
            row_.first = load(ir.getInt32Ty(), ctaid, "row.ctaid");
            row_.linear = load(ir.getInt64Ty(), linear, "row.linear");
            row_.count = load(ir.getInt32Ty(), offsetof(abi::CtaContext, ctas_in_row), "row.ctas");
        }
        llvm::BasicBlock* before = ir.GetInsertBlock();
        llvm::BasicBlock* loop = llvm::BasicBlock::Create(context, "row", function);
        llvm::BasicBlock* after = llvm::BasicBlock::Create(context, "row.done", function);
        ir.CreateBr(loop);
        ir.SetInsertPoint(loop);
        llvm::PHINode* number = ir.CreatePHI(ir.getInt32Ty(), 2, "row.cta");
        number->addIncoming(ir.getInt32(0), before);
        llvm::Value* x = ir.CreateAdd(row_.first, number);
        mark_as_own(ir.CreateStore(x, field(ctaid)));
        mark_as_own(ir.CreateStore(ir.CreateAdd(row_.linear, ir.CreateZExt(number, ir.getInt64Ty())), field(linear)));
        llvm::SmallVector<llvm::Value*, 6> all(arguments.begin(), arguments.end());
        all.push_back(x);
        llvm::Value* next = ir.CreateCall(functions_[0], all);
        llvm::Value* following = ir.CreateAdd(number, ir.getInt32(1), "", true, true);
        number->addIncoming(following, ir.GetInsertBlock());
        mark_step_loop(*ir.CreateCondBr(ir.CreateICmpULT(following, row_.count), loop, after));
        ir.SetInsertPoint(after);
        return next;
    }

    /// do for (step = 0; step < steps; ++step), or the other way round, next = max(next, region(step)), exited steps
    /// left out; while some have stopped in a loop, and then only those. Where all that have stopped wait, other CTAs
    /// have their turn in between.
    void emit_step_loop(Ir& ir, llvm::Function* function, std::size_t region, llvm::Value* cta, llvm::Value* frames,
                        llvm::Value* cta_in, llvm::Value* cta_out, llvm::Value* next_region) {
        llvm::LLVMContext& context = unit_.context;
        std::uint32_t steps = unit_.step_count();
        const bool takes_turns = !plan_.turns[region].empty();
        const bool waits =
            std::any_of(plan_.turns[region].begin(), plan_.turns[region].end(), [](auto& t) { return t.waits; });
        auto at = [&](llvm::Value* base, std::uint64_t offset) {
            return ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), base, offset);
        };
        llvm::BasicBlock* before = ir.GetInsertBlock();
        llvm::BasicBlock* loop = llvm::BasicBlock::Create(context, "steps", function);
        llvm::BasicBlock* run = llvm::BasicBlock::Create(context, "step", function);
        llvm::BasicBlock* latch = llvm::BasicBlock::Create(context, "step.next", function);
        llvm::BasicBlock* after = llvm::BasicBlock::Create(context, "steps.done", function);
        llvm::BasicBlock* again = takes_turns ? llvm::BasicBlock::Create(context, "steps.again", function) : nullptr;
        llvm::AllocaInst* walkers = nullptr; // steps that have stopped, but not to wait
        if (waits) {
            walkers = Ir(&function->getEntryBlock(), function->getEntryBlock().begin())
                          .CreateAlloca(ir.getInt32Ty(), nullptr, "walkers");
            ir.CreateStore(ir.getInt32(0), walkers);
        }
        ir.CreateBr(loop);
        ir.SetInsertPoint(loop);
        llvm::PHINode* round = ir.CreatePHI(ir.getInt32Ty(), 2, "round");
        round->addIncoming(ir.getInt32(0), before);
        llvm::Value* step = round;
        if (unit_.falling_steps.contains(plan_.barriers.resume_of[region]))
            step = ir.CreateSub(ir.getInt32(steps - 1), round, "step", true, true);
        llvm::PHINode *is_first = nullptr, *stopped_before = nullptr;
        if (takes_turns) {
            is_first = ir.CreatePHI(ir.getInt1Ty(), 3, "first.turn");
            is_first->addIncoming(ir.getTrue(), before);
            stopped_before = ir.CreatePHI(ir.getInt1Ty(), 3, "some.stopped");
            stopped_before->addIncoming(ir.getFalse(), before);
        }
        llvm::Value* offset = ir.CreateMul(ir.CreateZExt(step, ir.getInt64Ty()), ir.getInt64(plan_.step_size));
        llvm::Value* frame = ir.CreateInBoundsGEP(ir.getInt8Ty(), frames, offset, "frame");
        llvm::Value* runs = nullptr;
        if (region > 0 && plan_.frames.saves_mask)
            runs = ir.CreateICmpNE(ir.CreateLoad(ir.getInt64Ty(), at(frame, plan_.frames.mask_offset)), ir.getInt64(0));
        if (takes_turns) {
            llvm::Value* place = at(frame, plan_.frames.turn_offset);
            llvm::Value* turn = ir.CreateSelect(is_first, ir.getInt32(0), ir.CreateLoad(ir.getInt32Ty(), place));
            ir.CreateStore(turn, place); // in memory that nobody has written to, at first
            llvm::Value* has_turn = ir.CreateOr(is_first, ir.CreateICmpNE(turn, ir.getInt32(0)));
            runs = runs ? ir.CreateAnd(runs, has_turn) : has_turn;
        }
        if (runs)
            ir.CreateCondBr(runs, run, latch);
        else
            ir.CreateBr(run);
        ir.SetInsertPoint(run);
        mark_as_own(ir.CreateStore(step, at(cta, offsetof(abi::CtaContext, step))));
        llvm::Value* next = unit_.runs_in_rows ? emit_row(ir, function, {cta, step, frame, cta_in, cta_out})
                            : plan_.lane_by_lane[region]
                                ? run_lanes(ir, unit_.width, functions_[region], {cta, step, frame, cta_in, cta_out})
                                : ir.CreateCall(functions_[region], {cta, step, frame, cta_in, cta_out});
        llvm::Value* has_stopped = nullptr;
        if (takes_turns) {
            has_stopped = waits ? ir.CreateICmpUGE(next, ir.getInt32(stopped_to_wait))
                                : ir.CreateICmpEQ(next, ir.getInt32(stopped));
            if (waits)
                ir.CreateStore(
                    ir.CreateAdd(ir.CreateLoad(ir.getInt32Ty(), walkers),
                                 ir.CreateZExt(ir.CreateICmpEQ(next, ir.getInt32(stopped)), ir.getInt32Ty())),
                    walkers);
            llvm::Value* place = at(frame, plan_.frames.turn_offset);
            ir.CreateStore(ir.CreateSelect(has_stopped, ir.CreateLoad(ir.getInt32Ty(), place), ir.getInt32(0)), place);
            next = ir.CreateSelect(has_stopped, ir.getInt32(0), next);
        }
        llvm::Value* highest =
            ir.CreateBinaryIntrinsic(llvm::Intrinsic::umax, next, ir.CreateLoad(ir.getInt32Ty(), next_region));
        ir.CreateStore(highest, next_region);
        llvm::Value* some_stopped = takes_turns ? ir.CreateOr(stopped_before, has_stopped) : nullptr;
        llvm::BasicBlock* ran = ir.GetInsertBlock();
        ir.CreateBr(latch);
        ir.SetInsertPoint(latch);
        llvm::PHINode* stopped_now = nullptr;
        if (takes_turns) {
            stopped_now = ir.CreatePHI(ir.getInt1Ty(), 2);
            stopped_now->addIncoming(some_stopped, ran);
            stopped_now->addIncoming(stopped_before, loop);
            is_first->addIncoming(is_first, latch);
            stopped_before->addIncoming(stopped_now, latch);
        }
        llvm::Value* following = ir.CreateAdd(round, ir.getInt32(1), "", true, true);
        round->addIncoming(following, latch);
        llvm::BranchInst* round_end =
            ir.CreateCondBr(ir.CreateICmpULT(following, ir.getInt32(steps)), loop, takes_turns ? again : after);
        if (!takes_turns) mark_step_loop(*round_end);
        if (takes_turns) {
            ir.SetInsertPoint(again);
            llvm::BasicBlock* back = again;
            if (waits) {
                back = llvm::BasicBlock::Create(context, "steps.back", function);
                ir.CreateCondBr(stopped_now, back, after);
                ir.SetInsertPoint(back);
                back = emit_turn_of_others(ir, function, region, cta, walkers, next_region);
                ir.CreateBr(loop);
            } else {
                ir.CreateCondBr(stopped_now, loop, after);
            }
            round->addIncoming(ir.getInt32(0), back);
            is_first->addIncoming(ir.getFalse(), back);
            stopped_before->addIncoming(ir.getFalse(), back);
        }
        ir.SetInsertPoint(after);
    }

    KernelUnit& unit_;
    const FunctionGraph& graph_;
    const RegionPlan& plan_;
    const std::vector<llvm::Function*>& functions_;
    struct Row {
        llvm::Value *first = nullptr, *linear = nullptr, *count = nullptr; ///< the first CTA's numbers, and how many
    } row_;
};

} // namespace

void emit_region_driver(KernelUnit& unit, const FunctionGraph& graph, const RegionPlan& plan,
                        const std::vector<llvm::Function*>& functions) {
    RegionDriver(unit, graph, plan, functions).emit();
}

} // namespace ptarmigan::translator
