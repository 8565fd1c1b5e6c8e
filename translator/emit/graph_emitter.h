// SPDX-License-Identifier: Apache-2.0
// Emits one region of one function graph as an LLVM function. Values are kept in stack slots where they cross basic
// blocks (LLVM's SROA makes SSA of them again); inside a block they are used directly.
//   values.cpp          slots, reads, writes, phis, blending under guards
//   operands.cpp        operands, addresses, special registers
//   kept_accumulators.cpp  accumulators of products that stay packed in loops
//   affine.cpp          arithmetic on affine shapes
//   control_flow.cpp    masked execution following a LinearPlan
//   lane_versions.cpp   blocks in two versions: for all lanes, and for some
//   program_counters.cpp  per-lane program counters
//   loop_rounds.cpp     which round of its loops a lane is in
//   calls.cpp           real calls
//   work_marks.cpp      what is work and what is waiting
//   write_notes.cpp     what copies must not see yet
#pragma once

#include "translator/analysis/build/loop_accumulators.h"
#include "translator/analysis/graph/linear_plan.h"
#include "translator/analysis/loops/plan_turns.h"
#include "translator/analysis/memory/access_groups.h"
#include "translator/analysis/memory/computed_numbers.h"
#include "translator/analysis/waits/counter_goals.h"
#include "translator/emit/kernel_unit.h"
#include "translator/emit/known_values.h"
#include "translator/emit/warp_emitter.h"
#include "translator/kernel_abi.h"

#include <functional>
#include <optional>
#include <unordered_map>

namespace ptarmigan::translator {

/// How a region begins and ends; supplied by emit_kernel.
struct RegionInterface {
    /// Emitted in the function's entry block: fills slots of live-in values through set_live_in().
    std::function<void()> enter;
    /// Emitted where block `barrier` ends the region: saves live-out values and returns.
    std::function<void(BlockId barrier)> cut;
    /// Emitted at the exit block.
    std::function<void()> exit;
    /// Loops at whose latch the step stops every so many rounds: `stop` saves what is live and `masks` and returns; a
    /// later call of the function finds 1 + the turn's number in `turn_to_resume` (i32), and `resume` restores values
    /// and returns the masks.
    struct Turn {
        TurnPoint point;
        std::uint32_t rounds = 1; ///< from one stop to the next
        std::function<void(const std::vector<llvm::Value*>& masks)> stop;
        std::function<std::vector<llvm::Value*>()> resume;
    };
    std::vector<Turn> turns;
    std::function<llvm::Value*()> turn_to_resume;
    /// Lanes that start the region: known to be all; or at a place in memory (i64); or in a value (iW); or, when none
    /// of these is set, those of the step that exist in the block.
    bool entry_mask_full = false;
    std::function<llvm::Value*()> entry_mask_place;
    llvm::Value* entry_mask_bits = nullptr;
    /// Accumulators that loops keep, and the groups they were found with; both or none.
    const ProductGroups* product_groups = nullptr;
    const LoopAccumulators* accumulators = nullptr;
    /// Emitted in the function's entry block: their memory. Not set: the function has it on its stack.
    std::function<llvm::Value*()> accumulator_memory;
    /// %ctaid.x (i32), where it is not the context's while the function runs; null otherwise.
    llvm::Value* ctaid_x = nullptr;
    /// Byte offset of this function's frame in the thread's local memory (i64); null = 0.
    llvm::Value* frame_offset = nullptr;
};

/// Functions with a body that an indirect call may reach: its target list, or all that have its prototype's parameter
/// sizes; those that are not inlined in front of it. A pointer to anything else is a fault when it is called.
std::vector<ptx::FunctionId> indirect_targets(const FunctionGraph& graph, const GraphInstruction& instruction);

class GraphEmitter final : public WarpEmitter {
public:
    GraphEmitter(KernelUnit& unit, const FunctionGraph& graph, llvm::Function* function, llvm::Value* cta_context,
                 llvm::Value* step);

    /// Emits the region's code into the function. `plan` is used by the mask form; `view` by both.
    void emit_masks(const LinearPlan& plan, const RegionInterface& interface);
    void emit_program_counters(const RegionView& view, const RegionInterface& interface);

    // For RegionInterface callbacks.
    LaneValue value_in(BlockId block, ValueId value); ///< as seen at the end of `block`
    void set_live_in(ValueId value, const LaneValue& contents);
    llvm::Value* block_mask(BlockId block);        ///< <W x i1>
    bool block_mask_is_entry(BlockId block) const; ///< statically the entry mask
    /// Keeps the correction of `guard` at an address in the step frame instead of on the stack.
    void place_guard(ValueId guard, llvm::Value* correction_address);
    void set_guard_flag(ValueId guard, llvm::Value* holds);
    /// Traps if this function's frame doesn't fit the thread's local memory.
    void check_stack();

    // WarpEmitter
    std::uint32_t cluster_size() const override { return unit_.cluster_size(); }
    bool fiber_form() const override { return unit_.fiber_form; }
    llvm::Value* cta_context() override { return cta_context_; }
    llvm::Value* step_index() override { return step_; }
    llvm::Value* first_thread() override;
    llvm::Value* context_field(llvm::Type* type, unsigned byte_offset, std::string_view name) override;
    LaneValue read(const ptx::Operand& operand) override;
    const ptx::Operand& element(const ptx::Operand& operand, unsigned index) override;
    void write(const ptx::Operand& destination, const LaneValue& value) override;
    llvm::Value* active() override;
    bool all_active() override;
    bool meets_whole_warp() const override { return current_instruction_ && current_instruction_->meets_whole_warp; }
    bool has_unknown_operand() const override {
        return current_instruction_ && current_instruction_->has_unknown_operand;
    }
    bool hides_stored_value() const override { return current_instruction_ && current_instruction_->hides_value; }
    llvm::Value* existing_bits() override;
    llvm::Value* others_can_run() override;
    llvm::Value* live_bits() override;
    llvm::Value* round_numbers() override;
    LaneAddress address(const ptx::Operand& operand, ptx::StateSpace space) override;
    unsigned accesses_of_block() const override { return block_accesses_; }
    SharedEdges shared_edges() const override {
        return current_instruction_ ? current_instruction_->shared_edges : SharedEdges();
    }
    unsigned neighbours_ahead() const override {
        return current_instruction_ ? current_instruction_->neighbours_ahead : 0;
    }
    bool may_stream() const override { return current_instruction_ && current_instruction_->streams; }
    bool may_be_neighbours(const ptx::Operand& address) override;
    const ProductGroup* product_group(const ptx::Instruction& inst) override;
    KeptAccumulators kept_accumulators(const ProductGroup& group) override;
    llvm::ArrayRef<const ptx::Instruction*> loads_with(const ptx::Instruction& inst) override;
    const AccessGroup* store_group(const ptx::Instruction& inst) override;
    llvm::Value* call_builtin(std::string_view name, llvm::Type* result, Values arguments) override;
    llvm::Value* guard_correction(ValueId guard) override;
    llvm::Value* guard_holds(ValueId guard) override;
    const ptx::Module& source() const override { return unit_.loader.module(); }
    void note_write(llvm::Value* addresses, unsigned bytes) override;
    llvm::DebugLoc access_location(const AccessForm& form) override {
        return unit_.location(function_, current_->location, form);
    }

private:
    /// Stack slots of a value, by shape: a scalar, a scalar and a stride, or a vector.
    struct Place {
        llvm::Value* address = nullptr;
        llvm::Type* type = nullptr;
        explicit operator bool() const { return address; }
    };
    struct Slot {
        Place base, stride;
    };
    struct GuardSlot {
        llvm::AllocaInst* holds = nullptr;
        llvm::Value* correction = nullptr; ///< address of a <W x i64>, written only where the guard does not hold
    };

    // values.cpp
    void find_crossing_values(const RegionView& view);
    Place make_place(llvm::Type* type, const char* name);
    void use_memory_slots();
    void finish_memory_slots();
    Slot make_slot(const SsaValue& value, const Shape& shape);
    Slot& slot_of(ValueId value);
    void store_slot(const Slot& slot, const LaneValue& value);
    LaneValue load_slot(const Slot& slot, const Shape& shape, ptx::ScalarType type);
    llvm::Value* to_storage(llvm::Value* value);
    llvm::Value* from_storage(llvm::Value* value, llvm::Type* type);
    LaneValue value_at(BlockId block, ValueId value);
    void define(ValueId value, LaneValue contents);
    LaneValue conform(const LaneValue& value, const Shape& planned);
    LaneValue convert(LaneValue value, ptx::ScalarType to, bool sign_extend);
    LaneValue blend(const LaneValue& guard, const LaneValue& taken, const LaneValue& previous, const Shape& planned);
    LaneValue constant_value(const SsaValue& value);

    // kept_accumulators.cpp
    void place_accumulators();
    const LoopAccumulators::Place* kept_place(ValueId value) const {
        return interface_->accumulators ? interface_->accumulators->place(value) : nullptr;
    }
    llvm::Value* memory_of(const LoopAccumulators::Bank& bank);
    void keep_accumulators(BlockId from, BlockId to, unsigned index);
    LaneValue leaving_accumulator(const LoopAccumulators::Place& place,
                                  std::map<std::uint32_t, std::vector<llvm::Value*>>& unpacked);

    // operands.cpp
    LaneValue special_register(const ptx::Operand& operand, const Shape* planned);
    LaneValue thread_coordinate(unsigned component, const Shape* planned);
    LaneValue variable_address(const ptx::Operand& operand);
    LaneValue local_address(std::uint64_t offset);
    LaneValue shared_of_cta();
    std::uint64_t frame_bytes() const override;
    llvm::Value* local_begin() override;
    llvm::Value* frame_begin() override { return broadcast(local_address(0)); }
    bool stack_goes_up() const override { return graph_.stack_goes_up; }
    llvm::Value* whole_local_address(llvm::Value* address) override;
    LaneValue widen_address(LaneValue value);
    llvm::Value* complete_local_address(llvm::Value* low);
    LaneValue offset_by(LaneValue value, llvm::Value* uniform);
    llvm::Value* lane_numbers(llvm::Type* scalar);

    // affine.cpp
    bool emit_lane_zero(const GraphInstruction& instruction);
    bool wants_affine(const GraphInstruction& instruction, ValueId& result) const;
    void emit_affine(const GraphInstruction& instruction, ValueId result);
    LaneValue affine_result(const ptx::Instruction& inst, const Shape& planned, ValueId result);
    LaneValue convert_address(const ptx::Instruction& inst, LaneValue value, ptx::ScalarType to);
    LaneValue affine_add(const LaneValue& a, const LaneValue& b, const Shape& planned);
    LaneValue affine_negate(const LaneValue& a);
    LaneValue affine_multiply(const LaneValue& a, const LaneValue& b, const Shape& planned, bool constant_factor);
    bool is_constant_operand(const ptx::Operand& operand) const;
    LaneValue affine_widen(const LaneValue& value, ptx::ScalarType from, ptx::ScalarType to);
    void set_guard(ValueId guard, llvm::Value* holds, const std::function<llvm::Value*()>& correction);
    GuardSlot& guard_slot(ValueId guard);
    void make_guard(ValueId result, const LaneValue& narrow, bool is_signed,
                    const std::function<llvm::Value*()>& correction);

    // interleaved.cpp
    LaneValue local_place(const ptx::Operand& operand);
    LaneAddress interleaved_address(const ptx::Operand& operand);
    const LaneOffsets* granule_offsets(unsigned granule);

    // graph_emitter.cpp
    void prepare(const RegionView& view, const RegionInterface& interface);
    llvm::Value* lanes_with_threads();

    // control_flow.cpp
    void forget_last_round(BlockId header);
    void emit_block(BlockId block);
    bool is_cut(BlockId block) const;
    void emit_terminator(BlockId block);
    void emit_edge(BlockId block, unsigned successor, llvm::Value* mask);
    void move_phis(BlockId from, unsigned successor, llvm::Value* mask);
    llvm::Value* edge_condition(BlockId block, unsigned successor, const LaneValue& condition);
    llvm::Value* load_mask(llvm::AllocaInst* slot);
    void store_mask(llvm::AllocaInst* slot, llvm::Value* mask);
    llvm::AllocaInst* mask_slot(const char* name);
    BlockId mask_block(BlockId block) const;

    // turns.cpp
    void emit_resumption();
    void emit_turn(BlockId latch);
    std::vector<llvm::AllocaInst*> masks_at(const TurnPoint& point) const;

    // instructions.cpp
    void emit_instructions(BlockId block);
    void emit_instruction(const GraphInstruction& instruction);
    void begin_instruction(const GraphInstruction& instruction);
    void emit_votes(const GraphInstruction* first, unsigned count);
    void run_handler(const GraphInstruction& instruction);
    void emit_under_uniform_guard(const GraphInstruction& instruction, llvm::Value* condition);

    // prefetches.cpp
    llvm::Value* distance_ahead(const Prefetch& wanted, std::int64_t constant, std::int64_t factor);
    void emit_prefetch(const ptx::Instruction& inst, const Prefetch& wanted);
    bool turns_overfill_set(BlockId id) const;

    // yields.cpp
    void emit_hand_over(std::uint32_t point);
    void emit_yield();
    std::vector<bool> find_round_ends() const;
    void emit_spin_yield(BlockId block);
    void emit_atomic_yield();
    void emit_yield_each(std::uint32_t period);

    // work_marks.cpp
    const std::vector<bool>& waiting_loops();
    bool in_waiting_loop();
    std::uint32_t wait_around(BlockId block);
    bool inside_waiting_loop();
    const CounterGoals& counter_goals();
    void tell_of_addition(const ptx::Instruction& inst);
    void let_others_look(const ptx::Instruction& inst);
    void call_await_goal(abi::GoalEvent event, llvm::Value* lanes = nullptr);
    void set_work_mark(llvm::Value* lanes);
    bool writes_for_others(const ptx::Instruction& inst) const;
    void mark_work(const ptx::Instruction& inst);

    // access_checks.cpp
    void check_accesses(const GraphInstruction& instruction);

    // write_notes.cpp
    /// `call` with the lanes' addresses in memory, where a lane is active.
    void tell_of_addresses(llvm::Value* addresses, const std::function<void(llvm::Value* slot)>& call);
    void note_write(const ptx::Instruction& inst);

    // lane_versions.cpp
    bool wants_full_version(BlockId block) const;
    void emit_versions(BlockId block);

    // program_counters.cpp
    llvm::Value* initial_chance();
    llvm::Value* pick_block(llvm::Value* counters);
    void weigh_rounds();
    llvm::Value* lanes_here();
    llvm::Value* lane_of_chance(llvm::Value* chance);
    void part_by_chance(BlockId block, llvm::Value* counters);
    void park_others(llvm::Value* counters, llvm::Value* lane, llvm::Value* alone);
    void let_members_meet(BlockId block, llvm::Value* counters);
    llvm::Value* is_open(llvm::Value* numbers);
    llvm::Value* unpark(llvm::Value* counters);
    void find_ends_of_waits();
    void count_round(BlockId block);
    void emit_counter_edge(BlockId block, unsigned successor, llvm::Value* mask);

    // loop_rounds.cpp
    void place_round_numbers();
    void count_loop_rounds(BlockId block);
    llvm::Value* lanes_of_one_round(llvm::Value* mask);

    // calls.cpp
    bool is_real_call(const GraphInstruction& instruction) const;
    void emit_call(const GraphInstruction& instruction);
    llvm::Value* callee_frame(const ptx::Instruction& call, llvm::Value* mask_bits);
    void call_function(ptx::FunctionId callee, const GraphInstruction& instruction, llvm::Value* mask_bits);
    void emit_indirect_call(const GraphInstruction& instruction);
    void call_late(llvm::Value* target, const GraphInstruction& instruction, llvm::Value* mask_bits);
    void store_call_result(const ptx::Operand& result, llvm::Value* loaded, llvm::Value* mask);
    void write_call_results(const ptx::Instruction& call);
    void copy_block(llvm::Value* destination, llvm::Value* source, std::uint64_t bytes);
    llvm::Value* address_of_lane(const LaneValue& value, llvm::Value* lane);

    KernelUnit& unit_;
    const FunctionGraph& graph_;
    llvm::Function* function_;
    llvm::Value* cta_context_;
    llvm::Value* step_;
    std::vector<bool> ends_round_; ///< by block: a yield may be due behind it
    const RegionInterface* interface_ = nullptr;
    const LinearPlan* plan_ = nullptr; ///< null in the program-counter form
    llvm::BasicBlock* entry_block_ = nullptr;
    llvm::BasicBlock* dispatch_block_ = nullptr;
    llvm::AllocaInst* counters_ = nullptr;
    std::vector<llvm::BasicBlock*> blocks_;
    std::vector<std::uint32_t> counter_of_;          ///< program-counter form: number of each block
    std::vector<std::uint32_t> order_of_;            ///< likewise, without what is added to it
    std::optional<std::vector<bool>> waiting_loops_; ///< by index in the loop forest; once asked for
    std::optional<CounterGoals> counter_goals_;      ///< likewise
    std::vector<std::uint32_t> round_weight_;        ///< likewise: what an edge back to the block counts
    llvm::AllocaInst* waited_rounds_ = nullptr;      ///< made since a lane last overtook others
    llvm::AllocaInst* overtakings_ = nullptr;        ///< how many there were
    bool may_go_alone_ = false;                      ///< lanes, for some rounds of loops that wait
    std::vector<bool> ends_wait_;                    ///< by block: an edge leads there out of a loop that waits
    std::vector<llvm::AllocaInst*> round_numbers_;   ///< by loop; null: nobody asks in it. Behind them: of cycles
    llvm::AllocaInst* turn_lane_ = nullptr;          ///< which may be the next to; the state of a random schedule

    BlockId current_block_ = no_block;
    const GraphInstruction* current_instruction_ = nullptr;
    unsigned block_accesses_ = 0;                                        ///< loads and stores of the block at hand
    AccessGroups access_groups_;                                         ///< of the block at hand
    std::map<const ptx::Instruction*, const AccessGroup*> store_groups_; ///< likewise, by member
    std::optional<std::vector<bool>> computed_;                          ///< computed_numbers(), once asked for
    std::optional<ProductGroups> product_groups_;                        ///< once asked for, where none were given
    llvm::Value* accumulator_memory_ = nullptr;                          ///< of all banks
    bool full_version_ = false;  ///< the version of the block at hand for which all lanes are active
    bool lane_zero_ = false;     ///< operands are read as lane 0 sees them
    bool guard_handled_ = false; ///< the guard became a branch: active() ignores it
    std::vector<std::pair<ValueId, LaneValue>>* captured_ = nullptr;

    llvm::Value* call_mask_ = nullptr; ///< lanes of the target being served by an indirect call
    std::unordered_map<ValueId, llvm::AllocaInst*> call_results_;
    /// Slot loads go in front of this, where the block begins, so that they dominate all of the block's code.
    llvm::Instruction* loads_end_ = nullptr;

    void begin_block_code();

    /// Program-counter form with many values: slots stay in memory, see use_memory_slots().
    llvm::AllocaInst* memory_slots_ = nullptr;
    llvm::Value* memory_base_ = nullptr;
    std::uint64_t memory_used_ = 0;

    std::vector<bool> crosses_;
    std::unordered_map<ValueId, Slot> slots_;
    KnownValues known_; ///< in the current block
    std::unordered_map<ValueId, GuardSlot> guards_;
    std::vector<llvm::AllocaInst*> accumulated_mask_, current_mask_; ///< by block
    llvm::AllocaInst* rounds_ = nullptr;                             ///< of turn loops, since the step was called
    llvm::Value* entry_mask_ = nullptr;
    llvm::Value* counter_mask_ = nullptr; ///< program-counter form: mask of the current block
    LaneOffsets lane_iota_, lane_zeros_;
    std::map<unsigned, LaneOffsets> granule_offsets_; ///< of lanes that are so many bytes apart
    /// Quick code: what the entry block has loaded from the context, by offset and type.
    std::map<std::pair<unsigned, llvm::Type*>, llvm::Value*> kept_fields_;
};

} // namespace ptarmigan::translator
