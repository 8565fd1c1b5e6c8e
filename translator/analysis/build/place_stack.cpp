// SPDX-License-Identifier: Apache-2.0
// stacksave, stackrestore and alloca (manual 9.7.17). The stack pointer becomes a register of the graph, an address in
// the thread's local memory; so loops, branches and barriers need no rules for it. It starts at the end of the local
// memory and goes down. Where functions are called for real their frames lie behind one another from the beginning on:
// there the stack starts at the end of the function's own frame and goes up, and each call gets the pointer, behind
// which the callee's frame begins.
#include "translator/analysis/build/flatten.h"
#include "translator/analysis/graph/make_operands.h"

#include <algorithm>

namespace ptarmigan::translator {

namespace {

using ptx::FormId;
using ptx::Instruction;
using ptx::Operand;
using ptx::Role;
using ptx::ScalarType;

class StackPlacement {
public:
    explicit StackPlacement(FlatFunction& flat) : flat_(flat), graph_(flat.graph) {}

    void run() {
        const GraphInstruction* found = find();
        if (!found) return;
        const GraphInstruction first = *found; // gives the inserted ones their place
        graph_.uses_stack = true;
        graph_.stack_goes_up = !graph_.is_entry || !graph_.real_calls.empty() || graph_.has_indirect_call;
        pointer_ = new_register(ScalarType::b64);
        for (Block& block : graph_.blocks) rewrite(block);
        if (graph_.stack_goes_up) pass_to_callees();
        // What an inlined function takes is given back where it returns.
        for (auto [entry, exit] : flat_.stack_scopes) {
            const std::uint32_t saved = new_register(ScalarType::b64);
            insert_front(entry, move(first, saved, pointer_));
            insert_front(exit, move(first, pointer_, saved));
        }
        insert_front(
            0, instruction(first, FormId::stacksave, {ScalarType::u64}, {register_operand(pointer_, ScalarType::u64)}));
    }

private:
    static bool is_stack_form(const Instruction& inst) {
        return inst.form == FormId::stacksave || inst.form == FormId::stackrestore || inst.form == FormId::alloca;
    }

    const GraphInstruction* find() const {
        for (const Block& block : graph_.blocks)
            for (const GraphInstruction& instruction : block.instructions)
                if (is_stack_form(instruction.inst)) return &instruction;
        return nullptr;
    }

    std::uint32_t new_register(ScalarType type) {
        flat_.registers.push_back({"stack", type});
        return std::uint32_t(flat_.registers.size() - 1);
    }

    /// An instruction at the place of `at`, with its operands in the order of the row and without a guard.
    static GraphInstruction instruction(const GraphInstruction& at, FormId form,
                                        std::initializer_list<ScalarType> types,
                                        std::initializer_list<Operand> operands) {
        GraphInstruction result = at;
        result.inst = {};
        result.inst.form = form;
        result.inst.location = at.inst.location;
        result.inst.operand_count = std::uint8_t(ptx::form_info(form).operands.size());
        std::copy(types.begin(), types.end(), result.inst.types.begin());
        std::copy(operands.begin(), operands.end(), result.inst.operands.begin());
        return result;
    }

    static GraphInstruction move(const GraphInstruction& at, std::uint32_t to, std::uint32_t from) {
        return instruction(at, FormId::mov, {ScalarType::b64},
                           {register_operand(to, ScalarType::b64), register_operand(from, ScalarType::b64)});
    }

    void insert_front(BlockId block, GraphInstruction instruction) {
        auto& list = graph_.blocks[block].instructions;
        list.insert(list.begin(), std::move(instruction));
    }

    void rewrite(Block& block) {
        std::vector<GraphInstruction> result;
        for (GraphInstruction& instruction : block.instructions) {
            if (!is_stack_form(instruction.inst))
                result.push_back(std::move(instruction));
            else if (instruction.inst.form == FormId::stacksave)
                save(instruction, result);
            else if (instruction.inst.form == FormId::stackrestore)
                restore(instruction, result);
            else
                allocate(instruction, result);
        }
        block.instructions = std::move(result);
    }

    /// Appends what writes a register that others see: under the guard of the original.
    static void append_guarded(const GraphInstruction& at, GraphInstruction instruction,
                               std::vector<GraphInstruction>& out) {
        instruction.inst.guard = at.inst.guard;
        instruction.inst.guard_negated = at.inst.guard_negated;
        out.push_back(std::move(instruction));
    }

    /// Of 32 bits: the low half of the address.
    void save(const GraphInstruction& at, std::vector<GraphInstruction>& out) {
        const Operand& d = at.inst[Role::d];
        const bool wide = at.inst.types[0] == ScalarType::u64;
        graph_.narrow_stack_addresses |= !wide;
        GraphInstruction move =
            wide ? instruction(at, FormId::mov, {ScalarType::u64}, {d, register_operand(pointer_, ScalarType::u64)})
                 : instruction(at, FormId::cvt_narrow_32, {ScalarType::u32, ScalarType::u64},
                               {d, register_operand(pointer_, ScalarType::u64)});
        append_guarded(at, std::move(move), out);
    }

    /// Of 32 bits: by how far the pointer has to go from where it is.
    void restore(const GraphInstruction& at, std::vector<GraphInstruction>& out) {
        const Operand& a = at.inst[Role::a];
        const Operand sp = register_operand(pointer_, ScalarType::u64);
        if (at.inst.types[0] == ScalarType::u64)
            return append_guarded(at, instruction(at, FormId::mov, {ScalarType::u64}, {sp, a}), out);
        const Operand low = register_operand(new_register(ScalarType::b32), ScalarType::u32);
        const Operand way = register_operand(new_register(ScalarType::b32), ScalarType::u32);
        const Operand wide = register_operand(new_register(ScalarType::b64), ScalarType::s64);
        Operand signed_way = way, unsigned_wide = wide;
        signed_way.type = ScalarType::s32;
        unsigned_wide.type = ScalarType::u64;
        out.push_back(instruction(at, FormId::cvt_narrow_32, {ScalarType::u32, ScalarType::u64}, {low, sp}));
        out.push_back(instruction(at, FormId::sub_int, {ScalarType::u32}, {way, a, low}));
        out.push_back(instruction(at, FormId::cvt_widen_64, {ScalarType::s64, ScalarType::s32}, {wide, signed_way}));
        append_guarded(at, instruction(at, FormId::add_int, {ScalarType::u64}, {sp, sp, unsigned_wide}), out);
    }

    /// 32 bits of the size count, as on the H200. The handler of what stays an alloca aligns and checks a pointer that
    /// goes down; of one that goes up it checks the new value.
    void allocate(const GraphInstruction& at, std::vector<GraphInstruction>& out) {
        const Operand sp = register_operand(pointer_, ScalarType::u64);
        Operand size = at.inst[Role::size],
                size_bits = register_operand(new_register(ScalarType::b64), ScalarType::b64);
        size.type = at.inst.types[0] == ScalarType::u64 ? ScalarType::b64 : ScalarType::u32;
        if (at.inst.types[0] == ScalarType::u64)
            out.push_back(
                instruction(at, FormId::and_bits, {ScalarType::b64}, {size_bits, size, immediate(0xffffffff)}));
        else
            out.push_back(instruction(at, FormId::cvt_widen_64, {ScalarType::u64, ScalarType::u32},
                                      {as(size_bits, ScalarType::u64), size}));
        const Operand bytes = as(size_bits, ScalarType::u64);
        const Operand place = register_operand(new_register(ScalarType::b64), ScalarType::u64);
        if (graph_.stack_goes_up) {
            const Operand& alignment = at.inst[Role::alignment];
            const std::uint64_t align =
                alignment.kind == Operand::Kind::imm ? std::max<std::uint64_t>(alignment.value, 8) : 8;
            const Operand behind = register_operand(new_register(ScalarType::b64), ScalarType::u64);
            out.push_back(instruction(at, FormId::add_int, {ScalarType::u64},
                                      {place, sp, as(immediate(align - 1), ScalarType::u64)}));
            out.push_back(
                instruction(at, FormId::and_bits, {ScalarType::b64},
                            {as(place, ScalarType::b64), as(place, ScalarType::b64), immediate(~(align - 1))}));
            out.push_back(instruction(at, FormId::add_int, {ScalarType::u64}, {behind, place, bytes}));
            append_guarded(at, instruction(at, FormId::alloca, {ScalarType::u64}, {sp, behind, alignment}), out);
            return give(at, place, out);
        }
        out.push_back(instruction(at, FormId::sub_int, {ScalarType::u64}, {place, sp, bytes}));
        append_guarded(at, instruction(at, FormId::alloca, {ScalarType::u64}, {sp, place, at.inst[Role::alignment]}),
                       out);
        give(at, sp, out);
    }

    /// Writes an address to the destination: all of it, or the low half, which local accesses complete.
    void give(const GraphInstruction& at, const Operand& place, std::vector<GraphInstruction>& out) {
        const bool wide = at.inst.types[0] == ScalarType::u64;
        graph_.narrow_stack_addresses |= !wide;
        append_guarded(at,
                       wide ? instruction(at, FormId::mov, {ScalarType::u64}, {at.inst[Role::d], place})
                            : instruction(at, FormId::cvt_narrow_32, {ScalarType::u32, ScalarType::u64},
                                          {at.inst[Role::d], place}),
                       out);
    }

    static Operand as(Operand operand, ScalarType type) {
        operand.type = type;
        return operand;
    }

    static Operand immediate(std::uint64_t value) {
        Operand operand;
        operand.kind = Operand::Kind::imm;
        operand.type = ScalarType::b64;
        operand.value = value;
        return operand;
    }

    /// The pointer becomes the last argument of each call of a function of the program.
    void pass_to_callees() {
        for (Block& block : graph_.blocks)
            for (GraphInstruction& call : block.instructions) {
                if (!ptx::any(ptx::form_info(call.inst.form).effects, ptx::Effects::call)) continue;
                const Operand& callee = call.inst[Role::f];
                if (callee.kind == Operand::Kind::function && graph_.module->functions[callee.index].is_declaration)
                    continue;
                Operand& arguments = call.inst[Role::a];
                std::vector<Operand> all;
                if (arguments.kind == Operand::Kind::list)
                    all.assign(graph_.pool.begin() + arguments.first,
                               graph_.pool.begin() + arguments.first + arguments.count);
                else if (arguments.kind != Operand::Kind::none)
                    all.push_back(arguments);
                all.push_back(register_operand(pointer_, ScalarType::u64));
                arguments.kind = Operand::Kind::list;
                arguments.first = std::uint32_t(graph_.pool.size());
                arguments.count = std::uint32_t(all.size());
                graph_.pool.insert(graph_.pool.end(), all.begin(), all.end());
            }
    }

    FlatFunction& flat_;
    FunctionGraph& graph_;
    std::uint32_t pointer_ = 0;
};

} // namespace

void place_stack(FlatFunction& flat) {
    StackPlacement(flat).run();
}

} // namespace ptarmigan::translator
