// SPDX-License-Identifier: Apache-2.0
// wgmma (manual 9.7.15). Each warp does its share of a product where it issues it, and the warps of a warpgroup wait
// for each other at wgmma.wait_group: behind it one of them may tell others that the operands in shared memory are
// read.
#include "frontend/ptx/matrix_fragments.h"
#include "translator/lower/call_buffer.h"
#include "translator/lower/collective_call.h"
#include "translator/lower/lane_math.h"

namespace ptarmigan::translator::lower {

using abi::WarpgroupCall;
using abi::WarpgroupOperation;
using ptx::MatrixFragment;
using ptx::MatrixOperand;
using ptx::Operand;

namespace {

constexpr unsigned array_bytes = 32 * sizeof(std::uint32_t);

/// An abi::WarpgroupCall on the stack, with room for `registers`. Its place serves others afterwards.
class WarpgroupCallBuffer : private PassingCallBuffer {
public:
    WarpgroupCallBuffer(WarpEmitter& e, const Instruction& inst, const ptx::MatrixForm& form,
                        WarpgroupOperation operation, unsigned registers)
        : PassingCallBuffer(e, offsetof(WarpgroupCall, d) + std::size_t{registers} * array_bytes,
                            alignof(WarpgroupCall)),
          operation_(operation) {
        store_form(offsetof(WarpgroupCall, form), form);
        store(offsetof(WarpgroupCall, active), e.active_bits());
        store_number(offsetof(WarpgroupCall, line), inst.location.line);
        store_number(offsetof(WarpgroupCall, operation), std::uint32_t(operation));
        store_number(offsetof(WarpgroupCall, registers), registers);
        set_detail(0);
    }

    void set_detail(std::uint64_t number) { store_number(offsetof(WarpgroupCall, detail), number); }
    /// The operand's value in the first active lane.
    void set_common(std::size_t offset, const Operand& operand) {
        Ir& ir = e_.ir();
        const LaneValue value = e_.read(operand);
        llvm::Value* one = value.is_uniform()
                               ? value.base
                               : ir.CreateExtractElement(e_.broadcast(value), e_.first_lane(e_.active_bits()));
        store(offset, one);
    }
    /// Whether the predicate holds in any active lane.
    void set_any(std::size_t offset, const Operand& predicate) {
        Ir& ir = e_.ir();
        const LaneValue value = e_.read(predicate);
        llvm::Value* any = value.is_uniform() ? value.base : e_.any(ir.CreateAnd(e_.broadcast(value), e_.active()));
        store(offset, ir.CreateZExt(any, ir.getInt32Ty()));
    }
    void set_metadata(const Operand& words) { store_lanes(offsetof(WarpgroupCall, metadata), e_.lanes(words), 8); }
    void set_a(const Operand& registers) { set_registers(registers, offsetof(WarpgroupCall, a_registers)); }
    void set_d(const Operand& registers) { set_registers(registers, offsetof(WarpgroupCall, d)); }

    /// Calls the tensor core if any lane is active; narrow steps wait for the others of their warp.
    void run() {
        Ir& ir = e_.ir();
        if (!whole_warp(e_)) {
            store(offsetof(WarpgroupCall, first_lane),
                  ir.CreateAnd(e_.first_thread(), ir.getInt32(abi::warp_size - 1)));
            CollectiveCallBuffer meeting(e_, abi::Collective::warpgroup, std::uint32_t(operation_));
            meeting.set_source(e_.splat(ir.CreatePtrToInt(buffer_, ir.getInt64Ty())));
            meeting.run();
            return;
        }
        call(offsetof(abi::Services, warpgroup));
    }

    void write_d(const Operand& registers) {
        Ir& ir = e_.ir();
        for (unsigned i = 0; i < registers.count; ++i) {
            const Operand& element = e_.element(registers, i);
            if (element.kind != Operand::Kind::reg) continue;
            llvm::Value* lanes = ir.CreateFreeze(
                load_lanes(offsetof(WarpgroupCall, d) + std::size_t{i} * array_bytes, ir.getInt32Ty(), 64));
            llvm::Type* type = e_.type(element.type);
            if (type->isFloatingPointTy()) lanes = ir.CreateBitCast(lanes, e_.lanes_type(type));
            e_.write(element, LaneValue::varying(lanes));
        }
    }

private:
    void set_registers(const Operand& registers, std::size_t offset) {
        for (unsigned i = 0; i < registers.count; ++i)
            store_lanes(offset + std::size_t{i} * array_bytes, bits_of(e_.element(registers, i), 32), 64);
    }

    WarpgroupOperation operation_;
};

} // namespace

void wgmma_product(WarpEmitter& e, const Instruction& inst) {
    const ptx::MatrixForm form = ptx::matrix_form(inst);
    WarpgroupCallBuffer call(e, inst, form, WarpgroupOperation::multiply,
                             MatrixFragment(form, MatrixOperand::d).registers());
    if (form.a_in_memory)
        call.set_common(offsetof(WarpgroupCall, a), inst[Role::a]);
    else
        call.set_a(inst[Role::a]);
    call.set_common(offsetof(WarpgroupCall, b), inst[Role::b]);
    call.set_any(offsetof(WarpgroupCall, adds), inst[Role::scale_d]);
    if (ptx::is_sparse(form.opcode)) {
        call.set_detail(inst[Role::sel].value);
        call.set_metadata(inst[Role::meta]);
    }
    call.set_d(inst[Role::before]);
    call.run();
    call.write_d(inst[Role::d]);
}

/// Orders accesses to registers, which are in order here.
void wgmma_fence(WarpEmitter&, const Instruction&) {}

/// In region form a commit is where regions are cut. Groups matter where products may be late.
void wgmma_commit_group(WarpEmitter& e, const Instruction& inst) {
    if (e.options().late_copies) WarpgroupCallBuffer(e, inst, {}, WarpgroupOperation::commit, 0).run();
    warpgroup_barrier(e, inst);
}

/// Products are done unless they may be late: then they are done here, and registers get what they are to have.
void wgmma_wait_group(WarpEmitter& e, const Instruction& inst) {
    if (!e.options().late_copies) return;
    WarpgroupCallBuffer call(e, inst, {}, WarpgroupOperation::wait, inst[Role::before].count);
    call.set_detail(inst[Role::n].value);
    call.set_d(inst[Role::before]);
    call.run();
    call.write_d(inst[Role::after]);
}

} // namespace ptarmigan::translator::lower
