// SPDX-License-Identifier: Apache-2.0
// A kernel's text: its statements, block by block. Values are in lifter_values.cpp, blocks in lifter_blocks.cpp, rules
// in lift_*.cpp.
#include "frontend/sass/lifter.h"

#include <algorithm>

namespace ptarmigan::sass {
namespace {

using Kind = Operand::Kind;

using Rule = void (Lifter::*)(const Instruction&);
struct NamedRule {
    FormId id;
    Rule rule; ///< null: refused
};
#define LIFT(name, ...) &Lifter::name
#define REFUSE(reason) nullptr
#define SASS_FORM(id, code, layout, syntax, lifting) {FormId::id, lifting},
constexpr NamedRule rules[] = {
#include "frontend/sass/opcode_table.def"
};
#undef SASS_FORM
#undef LIFT
#undef REFUSE

} // namespace

Lifter::Lifter(const Cubin& cubin, const ModulePlan& plan, const CubinKernel& kernel)
    : cubin_(cubin), plan_(plan), kernel_(kernel) {
    const bool may_have_maps = std::any_of(kernel.parameters.begin(), kernel.parameters.end(),
                                           [&](const KernelParameter& parameter) { return has_map(parameter); });
    aligns_maps_ =
        may_have_maps && (plan.functions_read_window || reads_parameter_window(cubin, cubin.sections[kernel.text]));
}

/// Whether it may be a tensor's map, whose address must be a multiple of 64 among the bank's addresses. All that one
/// says is in its first half, and cuDNN hands over no more.
bool Lifter::has_map(const KernelParameter& parameter) const {
    return cubin_.architecture >= 90 && parameter.size >= 64 && (kernel_.parameter_base + parameter.offset) % 64 == 0;
}

void Lifter::rule(const Instruction& inst) {
    const Rule rule = rules[unsigned(inst.form->id)].rule;
    if (rule == nullptr) throw Unliftable(std::string(inst.form->refusal));
    (this->*rule)(inst);
}

void Lifter::refuse_here(const std::string& why) {
    throw Unliftable(why);
}

// --- statements ---

void Lifter::emit(const std::string& statement) {
    if (!writes_) return;
    text_ += '\t';
    text_ += statement;
    text_ += ";\n";
}

void Lifter::emit_guarded(const std::string& statement) {
    if (!writes_) return;
    text_ += '\t';
    if (current_->guard != true_predicate || current_->guard_negated) {
        text_ += current_->guard_negated ? "@!" : "@";
        text_ += current_->guard == true_predicate ? std::string("%ptrue") : guard_condition().name;
        text_ += ' ';
    }
    text_ += statement;
    text_ += ";\n";
}

std::string Lifter::label(unsigned block) const {
    return "L" + std::to_string(blocks_[block].context) + "_" + hexadecimal(blocks_[block].begin).substr(2);
}

void Lifter::begin_block(const EntryState& pairs) {
    registers_ = {};
    carries_ = {};
    parameter_pairs_.clear();
    variable_pairs_.clear();
    sine_arguments_.clear();
    guarded_sines_.clear();
    reciprocals_.clear();
    reciprocal_products_.clear();
    lone_masks_.clear();
    lone_lanes_.clear();
    collective_mask_ = pairs[active_mask_bit] ? "%active_mask" : "";
    lanes_here_.clear();
    elected_.clear();
    pairs_ = pairs;
    for (unsigned index = 0; index < register_count; ++index)
        registers_[index].is_window_high = pairs[window_high_bits + index];
    for (unsigned pair = 0; pair < register_count / 2; ++pair) {
        if (!pairs[pair]) continue;
        const unsigned index = 2 * pair;
        const int wide = name_wide(pair_name(index));
        for (unsigned half = 0; half < 2; ++half) {
            registers_[index + half].wide = wide;
            registers_[index + half].is_high = half == 1;
        }
    }
}

void Lifter::lift_block(unsigned id) {
    current_block_ = id;
    const Block& block = blocks_[id];
    if (lift_shared_loop(block)) {
        current_ = nullptr;
        return;
    }
    std::size_t next_place = 0;
    for (std::uint32_t at = block.begin; at < block.end; at += instruction_size) {
        const Instruction& inst = code_[at / instruction_size];
        current_ = &inst;
        lifted_ = {&inst, 1};
        // Named by constant places, what is kept in the stack becomes registers again.
        if (stack_ == Stack::fixed && id < stack_places_.size() && next_place < stack_places_[id].size() &&
            stack_places_[id][next_place].from == at)
            registers_[stack_pointer].constant = stack_places_[id][next_place++].place;
        if (inst.guard == true_predicate && inst.guard_negated) continue; // never
        try {
            keep_guard(inst);
            if (const auto relocation = relocated_.find(at); relocation != relocated_.end())
                move_address(inst, relocation->second);
            else
                rule(inst);
            guard_copy_.clear();
        } catch (const Unliftable& problem) {
            const std::string what = problem.what(), text = describe(inst);
            throw Unliftable(text + " at " + place(at) + (what.empty() || what == text ? "" : " (" + what + ")"));
        }
    }
    current_ = nullptr;
}

std::vector<Lifter::PlacedParameter> Lifter::place_parameters() const {
    std::vector<PlacedParameter> placed;
    std::uint32_t end = 0, end_here = 0; // in the bank, and in the list that is declared
    for (const KernelParameter& parameter : kernel_.parameters) {
        // The largest alignment that the place allows and that no earlier parameter's end forbids.
        std::uint32_t alignment = 1;
        while (alignment < 16 && parameter.offset % (2 * alignment) == 0 &&
               (end + 2 * alignment - 1) / (2 * alignment) * (2 * alignment) <= parameter.offset)
            alignment *= 2;
        if (aligns_maps_ && has_map(parameter)) alignment = 64;
        const bool is_power = parameter.size == 8 || parameter.size == 4 || parameter.size == 2 || parameter.size == 1;
        const bool is_scalar = is_power && alignment >= parameter.size &&
                               (end + parameter.size - 1) / parameter.size * parameter.size == parameter.offset;
        if (is_scalar) alignment = parameter.size;
        const std::uint32_t offset = (end_here + alignment - 1) / alignment * alignment;
        placed.push_back({alignment, offset, is_scalar});
        end = parameter.offset + parameter.size;
        end_here = offset + parameter.size;
    }
    return placed;
}

/// Whether parameters lie at other distances from each other than in the bank.
bool Lifter::has_shifted_parameters() const {
    const std::vector<PlacedParameter> placed = place_parameters();
    for (std::size_t i = 0; i < placed.size(); ++i)
        if (placed[i].offset - kernel_.parameters[i].offset != placed[0].offset - kernel_.parameters[0].offset)
            return true;
    return false;
}

/// Whether `inst`, a copy that a warp makes once, is reached by all lanes though only some of them (the elected one)
/// give its uniform registers their values: `@P0 R2UR UR8, R2`, UTMALDG [UR8]. ptxas joins a short way of one lane so.
bool Lifter::is_copy_of_one_lane(const Instruction& inst) const {
    constexpr std::uint32_t distance = 64 * instruction_size;
    if ((inst.form->traits & COPIES) == 0 || inst.operands[0].kind != Kind::uniform || !is_unguarded(inst))
        return false;
    unsigned registers = 1; // from the first on: the target, the object, the coordinates
    for (unsigned rank = 1; rank <= 5; ++rank)
        if (inst.has((std::to_string(rank) + "D").c_str()))
            registers = rank + ((inst.form->traits & SIGNALS) != 0 ? 2 : 1);
    for (std::uint32_t at = inst.address; at > 0 && inst.address - at < distance; at -= instruction_size) {
        const Instruction& before = code_[at / instruction_size - 1];
        if (before.form == nullptr || leaders_[at / instruction_size] || before.form->id == FormId::elect) return false;
        if (before.form->rule != "r2ur") continue;
        if (before.operands[0].index != true_predicate) return false; // lanes have their turns
        const unsigned place = before.operands[1].index - unsigned(inst.operands[0].index);
        if (!is_unguarded(before) && place < registers) return true;
    }
    return false;
}

/// What the code counts on, by what it holds.
void Lifter::find_kind() {
    has_ranks_ = kernel_.has_clusters;
    // CUDA Tile's compiler has PTX whose copies every lane comes to, and a GPU does once for the warp.
    bool is_asynchronous = false, is_of_warps = kernel_.is_tile;
    constexpr std::int64_t give_rank[] = {0x654, 0x4210}; // selectors of PRMT that put a byte on top
    for (const Instruction& inst : code_) {
        if (inst.form == nullptr) continue;
        if ((inst.form->traits & NAMES_CLUSTER) != 0) has_ranks_ = true;
        if (inst.form->rule == "prmt")
            for (const std::int64_t selector : give_rank)
                if (inst.operands[2].kind == Kind::immediate && inst.operands[2].value == selector) has_ranks_ = true;
        is_asynchronous = is_asynchronous || (inst.form->traits & ASYNCHRONOUS) != 0;
        // USETSHMSZ, which no PTX says.
        is_of_warps = is_of_warps || inst.form->id == FormId::usetshmsz || is_copy_of_one_lane(inst);
    }
    is_by_hand_ = is_asynchronous && (!kernel_.names_workarounds || is_of_warps);
    if (cubin_.architecture < 90) has_ranks_ = false;
}

std::string Lifter::parameter_list() const {
    std::string text;
    const std::vector<PlacedParameter> placed = place_parameters();
    for (std::size_t i = 0; i < placed.size(); ++i) {
        const KernelParameter& parameter = kernel_.parameters[i];
        if (!text.empty()) text += ", ";
        if (placed[i].is_scalar)
            text += ".param .b" + std::to_string(8 * parameter.size) + " param_" + std::to_string(parameter.ordinal);
        else
            text += ".param .align " + std::to_string(placed[i].alignment) + " .b8 param_" +
                    std::to_string(parameter.ordinal) + "[" + std::to_string(parameter.size) + "]";
    }
    return text;
}

/// Before a block that is one of several entries of a loop: ways to it go through one place, which stands before the
/// loop's first block.
void Lifter::enter_loop(unsigned block) {
    const auto loop = std::size_t(loops_.loop_of[block]);
    const std::vector<unsigned>& entries = loops_.loops[loop];
    const std::string number = "%loop_entry" + std::to_string(loop), begin = "loop_" + std::to_string(loop);
    const auto own = std::find(entries.begin(), entries.end(), block) - entries.begin();
    const auto come = [&] {
        emit("mov.b32 " + number + ", " + std::to_string(own));
        emit("bra " + begin);
    };
    come();
    text_ += label(block) + "_again:\n";
    come();
    if (own == 0) {
        text_ += begin + ":\n";
        for (std::size_t i = 1; i < entries.size(); ++i) {
            emit("setp.eq.u32 %is_entry, " + number + ", " + std::to_string(i));
            text_ += "\t@%is_entry bra " + label(entries[i]) + "_inside;\n";
        }
    }
    text_ += label(block) + "_inside:\n";
}

/// Where the current block goes to get to another.
std::string Lifter::way_to(unsigned block) const {
    return label(block) + (loops_.back_edges.count({current_block_, block}) != 0 ? "_again" : "");
}

std::string Lifter::lift() {
    discover();
    find_kind();
    // Which pairs hold one value at the beginning of each block: all, until a way to there says otherwise.
    using Pairs = EntryState;
    std::vector<Pairs> entries(blocks_.size(), Pairs().set());
    entries[0].reset();
    writes_ = false;
    std::vector<unsigned> work(blocks_.size());
    for (unsigned id = 0; id < blocks_.size(); ++id) work[id] = unsigned(blocks_.size()) - 1 - id;
    std::vector<bool> waits(blocks_.size(), true);
    while (!work.empty()) {
        const unsigned id = work.back();
        work.pop_back();
        waits[id] = false;
        begin_block(entries[id]);
        lift_block(id);
        for (const unsigned successor : blocks_[id].successors) {
            const Pairs entry = entries[successor] & pairs_;
            if (entry == entries[successor]) continue;
            entries[successor] = entry;
            if (!waits[successor]) {
                waits[successor] = true;
                work.push_back(successor);
            }
        }
    }
    writes_ = true;
    temporaries_ = wide_temporaries_ = predicate_temporaries_ = 0;
    halves_ = 1;
    quads_ = 0;
    wide_names_.clear();
    wide_ids_.clear();
    wide_constants_.clear();
    text_.clear();
    std::vector<unsigned> order(blocks_.size());
    for (unsigned id = 0; id < order.size(); ++id) order[id] = id;
    std::sort(order.begin(), order.end(), [&](unsigned a, unsigned b) {
        return std::pair(blocks_[a].context, blocks_[a].begin) < std::pair(blocks_[b].context, blocks_[b].begin);
    });
    std::vector<std::vector<unsigned>> successors(blocks_.size());
    for (unsigned id = 0; id < blocks_.size(); ++id) successors[id] = blocks_[id].successors;
    loops_ = find_loop_entries(successors);
    for (std::size_t i = 0; i < order.size(); ++i) {
        const unsigned id = order[i];
        text_ += label(id) + ":\n";
        if (loops_.loop_of[id] >= 0) enter_loop(id);
        begin_block(entries[id]);
        lift_block(id);
        if (!blocks_[id].falls_through) continue;
        const unsigned next = blocks_[id].successors.back();
        if (i + 1 == order.size() || order[i + 1] != next || way_to(next) != label(next)) emit("bra " + way_to(next));
    }
    std::string head;
    head +=
        "\t.reg .b32 %r<256>, %u<80>;\n\t.reg .b64 %d<256>, %ud<80>;\n\t.reg .pred %p<7>, %up<7>, %ptrue, %pfalse;\n";
    head += "\t.reg .b32 %t<" + std::to_string(temporaries_ + 1) + ">;\n";
    head += "\t.reg .b64 %q<" + std::to_string(wide_temporaries_ + 1) + ">;\n";
    head += "\t.reg .pred %c<" + std::to_string(predicate_temporaries_ + 1) + ">;\n";
    head += "\t.reg .b16 %h<" + std::to_string(halves_ + 1) + ">;\n";
    head +=
        "\t.reg .b64 %shared_window, %local_window, %local_base;\n\t.reg .b32 %shared_base, %barrier_result, %active_mask, %met_mask;\n";
    head += "\t.reg .pred %barrier_predicate, %lone;\n";
    if (!known_checks_.empty()) head += "\t.reg .b32 %fchk_a<7>, %fchk_b<7>;\n";
    if (quads_ != 0) head += "\t.reg .b128 %o<" + std::to_string(quads_) + ">;\n";
    if (text_.find("%sine") != text_.npos) head += "\t.reg .b32 %sine<" + std::to_string(register_count) + ">;\n";
    if (!loops_.loops.empty())
        head += "\t.reg .b32 %loop_entry<" + std::to_string(loops_.loops.size()) + ">;\n\t.reg .pred %is_entry;\n";
    head += "\tsetp.eq.u32 %ptrue, 0, 0;\n\tsetp.ne.u32 %pfalse, 0, 0;\n";
    if (kernel_.shared_size > 0) {
        const std::uint32_t alignment = std::max(kernel_.shared_alignment, 16u);
        const std::uint32_t size = (kernel_.shared_size + alignment - 1) / alignment * alignment;
        head += "\t.shared .align " + std::to_string(alignment) + " .b8 sass_shared[" + std::to_string(size) + "];\n";
    }
    const std::string shared = kernel_.shared_size > 0 ? "sass_shared" : "sass_dynamic_shared";
    if (text_.find(constant_window) != text_.npos)
        head += "\t.reg .b64 %constant_window;\n\tmov.u64 %constant_window, sass_constants;\n"
                "\tcvta.const.u64 %constant_window, %constant_window;\n";
    const bool names_window_high = text_.find(window_high) != text_.npos;
    // A kernel that names shared memory counts as one whose lanes may talk there, and is not made in versions.
    const auto names = [&](const char* words) { return text_.find(words) != text_.npos; };
    if (kernel_.shared_size > 0 || names_window_high || names("%shared_") || names(".shared") || names("call"))
        head += "\tmov.u32 %shared_base, " + shared + ";\n\tcvta.shared.u64 %shared_window, " +
                (has_ranks_ ? "0" : shared) + ";\n";
    if (reads_parameter_window_)
        head += "\t.reg .b64 %parameter_window;\n\tmov.u64 %parameter_window, param_0;\n"
                "\tcvta.param.u64 %parameter_window, %parameter_window;\n\tsub.s64 %parameter_window, "
                "%parameter_window, " +
                std::to_string(kernel_.parameters[0].offset) + ";\n";
    if (names_window_high)
        head +=
            "\t.reg .b32 %window_high;\n\t{\n\t.reg .b32 %low;\n\tmov.b64 {%low, %window_high}, %shared_window;\n\t}\n";
    if (stack_ == Stack::growing) {
        // The variable is the thread's only one: behind it is what the context's limit adds, up to the stack's end.
        head += "\t.reg .b64 %stack_end, %stack_begin;\n\t.reg .b32 %stack_lowest;\n";
        head += "\t.local .align 16 .b8 sass_stack[" + std::to_string(std::max(kernel_.stack_size, 16u)) + "];\n";
        head += "\tstacksave.u64 %stack_end;\n\tsub.s64 %local_base, %stack_end, " + std::to_string(growing_stack_end) +
                ";\n\tmov.u64 %stack_begin, sass_stack;\n\tsub.s64 %stack_begin, %stack_begin, %local_base;\n"
                "\tcvt.u32.u64 %stack_lowest, %stack_begin;\n\tcvta.local.u64 %local_window, %local_base;\n";
    } else if (kernel_.stack_size > 0) {
        head += "\t.local .align 16 .b8 sass_stack[" + std::to_string(kernel_.stack_size) + "];\n";
        head += "\tmov.u64 %local_base, sass_stack;\n\tcvta.local.u64 %local_window, sass_stack;\n";
    }
    return head + text_;
}

} // namespace ptarmigan::sass
