// SPDX-License-Identifier: Apache-2.0
// Blocks of a kernel, found from its entry: successors, calls cloned, the stack followed.
#include "frontend/sass/lifter.h"
#include "frontend/sass/slow_ways.h"
#include "frontend/sass/special_registers.h"

#include <algorithm>

namespace ptarmigan::sass {
namespace {

using Kind = Operand::Kind;

/// Of calls that are cloned, and of all.
constexpr unsigned context_limit = 2000, depth_limit = 24, cloned_block_limit = 50'000, block_limit = 400'000;

/// There are too many calls to have a callee's blocks for each.
struct TooManyCalls {};

} // namespace

const Instruction& Lifter::instruction_at(std::uint32_t address) const {
    if (address % instruction_size != 0 || address / instruction_size >= code_.size())
        throw Unliftable("a branch out of the function");
    return code_[address / instruction_size];
}

unsigned Lifter::block_at(unsigned context, std::uint32_t address) {
    static_cast<void>(instruction_at(address));
    const auto [place, is_new] = block_ids_.emplace(std::pair(context, address), unsigned(blocks_.size()));
    if (is_new) {
        if (blocks_.size() == block_limit) throw Unliftable("too many blocks");
        if (!merges_calls_ && contexts_.size() > 1 && blocks_.size() == cloned_block_limit) throw TooManyCalls();
        Block block;
        block.context = context;
        block.begin = address;
        blocks_.push_back(block);
    }
    return place->second;
}

namespace {

bool is_unconditional(const Instruction& inst) {
    return inst.guard == true_predicate && !inst.guard_negated;
}

/// What is known of R1 and its copies: distances from the stack's beginning.
struct StackState {
    std::map<unsigned, std::int64_t> registers;
    std::map<std::int64_t, std::int64_t> kept; ///< in the stack, by place
    bool is_exact = true; ///< R1 was never the lowest of several: what the map says of it is its value
};

/// The register or predicate in these bits, where `inst` writes one.
bool writes_predicate(const Instruction& inst, unsigned index) {
    for (std::size_t i = 0; i < inst.form->operands.size(); ++i) {
        const OperandSpec& spec = inst.form->operands[i];
        if (spec.field.parts.empty() || inst.operands[i].kind != Operand::Kind::predicate) continue;
        const unsigned first = spec.field.parts[0].first;
        if ((first == 81 || first == 84) && inst.operands[i].index == index) return true;
    }
    return false;
}

/// Follows R1, which begins at `size`, over `inst`. False where it is not known behind it.
bool follow_stack(const Instruction& inst, StackState& state, std::int64_t size) {
    using Kind = Operand::Kind;
    if (inst.form == nullptr || inst.operand_count < 2) return true;
    const std::string_view rule = inst.form->rule;
    const auto value_of = [&](const Operand& operand) -> std::optional<std::int64_t> {
        if (operand.kind == Kind::reg && operand.index == zero_register) return 0;
        if (operand.kind == Kind::reg && !operand.negated && !operand.inverted)
            if (const auto found = state.registers.find(operand.index); found != state.registers.end())
                return found->second;
        return {};
    };
    const auto place_of = [&](const Operand& operand) -> std::optional<std::int64_t> {
        if (operand.kind != Kind::address || operand.uniform != zero_uniform || operand.scale != 0) return {};
        const auto found = state.registers.find(operand.index);
        if (found == state.registers.end()) return {};
        return found->second + operand.value;
    };
    if (rule == "store_local") {
        // What is kept at a place that is not known is taken for elsewhere: compilers keep R1's copies so.
        const auto place = place_of(inst.operands[0]);
        if (!place) return true;
        for (std::int64_t at = *place - 12; at < *place + 16; at += 4) state.kept.erase(at);
        const auto value = value_of(inst.operands[1]);
        const bool is_word = !inst.has("U8") && !inst.has("S8") && !inst.has("U16") && !inst.has("S16") &&
                             !inst.has("64") && !inst.has("128");
        if (value && is_word && inst.operands[1].index != zero_register && inst.guard == true_predicate)
            state.kept[*place] = *value;
        return true;
    }
    for (unsigned i = 0; i < inst.operand_count; ++i) { // second ones: of textures
        if (!inst.form->operands[i].is_result || inst.operands[i].kind != Kind::reg) continue;
        for (unsigned k = 0; k < registers_of(inst, i); ++k)
            if (inst.form->operands[i].field.parts[0].first != 16) state.registers.erase(inst.operands[i].index + k);
    }
    for (std::size_t i = 0; i < inst.form->operands.size(); ++i) {
        const OperandSpec& spec = inst.form->operands[i];
        if (spec.kind != 'd' || spec.field.parts.empty() || spec.field.parts[0].first != 16) continue;
        const unsigned target = inst.operands[i].index;
        if (target == zero_register) return true;
        const auto before = state.registers.find(target);
        std::optional<std::int64_t> result;
        if (rule == "mov" || rule == "load_constant" || rule == "imad") {
            const Operand& source = inst.operands[rule == "imad" ? 4 : 1];
            const bool moves = rule != "imad" || (inst.operands[2].kind == Kind::reg &&
                                                  inst.operands[2].index == zero_register && !inst.has("X"));
            const bool is_one = rule == "imad" && inst.operands[3].kind == Kind::immediate &&
                                inst.operands[3].value == 1 && !inst.has("X");
            const bool is_whole = rule != "load_constant" || (!inst.has("64") && source.index == zero_register);
            if (moves && is_whole && source.kind == Kind::constant && source.bank == 0 && source.value == 0x28)
                result = size;
            else if (moves && source.kind == Kind::reg)
                result = source.index == zero_register ? std::nullopt : value_of(source);
            else if (is_one && value_of(source) && value_of(inst.operands[2]))
                result = *value_of(source) + *value_of(inst.operands[2]);
        } else if ((rule == "iadd3" && !inst.has("X")) || rule == "viadd") {
            std::int64_t sum = 0;
            unsigned registers = 0;
            bool known = true;
            for (std::size_t k = i + 1; k < inst.operand_count; ++k) {
                const Operand& source = inst.operands[k];
                if (source.kind == Kind::predicate) continue;
                if (source.kind == Kind::immediate)
                    sum += std::int32_t(source.value);
                else if (source.kind == Kind::reg && source.index == zero_register)
                    continue;
                else if (const auto value = value_of(source))
                    sum += *value, ++registers;
                else
                    known = false;
            }
            if (known && registers == 1) result = sum;
        } else if (rule == "lop3" && inst.operands[3].kind == Kind::immediate && inst.operands[5].value == 0xc0 &&
                   inst.operands[0].index == true_predicate) {
            // R & -16
            const auto mask = std::int32_t(inst.operands[3].value);
            if (const auto value = value_of(inst.operands[2]); value && mask < 0) result = *value & mask;
        } else if (rule == "load_local" && !inst.has("64") && !inst.has("128")) {
            if (const auto place = place_of(inst.operands[1]))
                if (const auto found = state.kept.find(*place); found != state.kept.end()) result = found->second;
        }
        const bool is_certain = inst.guard == true_predicate && !inst.guard_negated;
        if (target == stack_pointer) {
            if (!result) return false;
            // Under a condition the lower of both.
            if (!is_certain && before != state.registers.end()) {
                state.is_exact = state.is_exact && *result == before->second;
                result = std::min(*result, before->second);
            }
            state.registers[target] = *result;
            return *result >= 0;
        }
        const unsigned count = registers_of(inst, unsigned(i));
        for (unsigned k = 0; k < count; ++k) {
            // Counts may err upwards, and no code that has a stack writes R1 so.
            if (target + k == stack_pointer)
                state.is_exact = false;
            else
                state.registers.erase(target + k);
        }
        if (result && is_certain) state.registers[target] = *result;
        return true;
    }
    return true;
}

} // namespace

/// Whether anything in the code reaches the stack: a load, a store, the window of generic addresses or its size.
bool Lifter::names_local_memory() const {
    for (const Instruction& inst : code_) {
        if (inst.form == nullptr) continue;
        if (inst.form->rule == "load_local" || inst.form->rule == "store_local") return true;
        for (unsigned i = 0; i < inst.operand_count; ++i) {
            const Operand& operand = inst.operands[i];
            if (operand.kind == Kind::constant && operand.bank == 0 && (operand.value & ~7) == 0x20) return true;
            if (operand.kind == Kind::special && special_register_name(unsigned(operand.value)) == "SR_LMEMHIOFF")
                return true;
        }
    }
    return false;
}

/// How R1 is kept in the stack: known on all ways and not further down than what the file says of the stack's size, or
/// asked where it is written.
void Lifter::choose_stack() {
    if (kernel_.stack_size == 0 && !kernel_.has_unknown_stack && !names_local_memory())
        return; // R1 is a register like others
    const auto moves_stack = [](const Instruction& inst) {
        if (inst.form == nullptr || inst.form->rule == "load_constant") return false;
        if ((inst.form->rule == "mov" || inst.form->rule == "imad") &&
            inst.operands[inst.form->rule == "mov" ? 1 : 4].kind == Kind::constant)
            return false;
        return inst.operand_count > 0 && inst.operands[0].kind == Kind::reg && inst.operands[0].index == stack_pointer;
    };
    if (std::none_of(code_.begin(), code_.end(), moves_stack)) return;
    if (merges_calls_)
        stack_ = kernel_.has_unknown_stack || has_recursion() ? Stack::growing : Stack::checked;
    else if (!is_stack_known())
        stack_ = Stack::growing;
}

/// Whether R1 is followed over all ways, and stays in the stack. Then what it is is known but where it depends on a
/// condition.
bool Lifter::is_stack_known() {
    const auto size = std::int64_t(kernel_.stack_size);
    std::vector<std::optional<StackState>> entries(blocks_.size());
    std::vector<unsigned> work{0};
    entries[0] = StackState{{{stack_pointer, size}}, {}};
    std::size_t steps = 64 + 64 * blocks_.size();
    while (!work.empty()) {
        const Block& block = blocks_[work.back()];
        StackState state = *entries[work.back()];
        work.pop_back();
        for (std::uint32_t at = block.begin; at < block.end; at += instruction_size)
            if (steps == 0 || !follow_stack(code_[at / instruction_size], state, size)) return false;
        --steps;
        for (const unsigned successor : block.successors) {
            std::optional<StackState>& entry = entries[successor];
            if (!entry) {
                entry = state;
                work.push_back(successor);
                continue;
            }
            bool changes = false;
            const auto keep_common = [&](auto& here, const auto& other) {
                changes |= std::erase_if(here, [&](const auto& item) {
                               const auto found = other.find(item.first);
                               return found == other.end() || found->second != item.second;
                           }) != 0;
            };
            // Of R1, which moves under a condition, the lowest.
            const std::int64_t lowest = std::min(entry->registers[stack_pointer], state.registers[stack_pointer]);
            const bool is_exact =
                entry->is_exact && state.is_exact && entry->registers[stack_pointer] == state.registers[stack_pointer];
            changes = entry->registers[stack_pointer] != lowest || entry->is_exact != is_exact;
            entry->is_exact = is_exact;
            entry->registers[stack_pointer] = state.registers[stack_pointer] = lowest;
            keep_common(entry->registers, state.registers);
            keep_common(entry->kept, state.kept);
            if (changes) work.push_back(successor);
        }
    }
    stack_places_.assign(blocks_.size(), {});
    for (unsigned id = 0; id < blocks_.size(); ++id) {
        if (!entries[id]) continue;
        StackState& state = *entries[id];
        std::vector<StackPlace>& places = stack_places_[id];
        for (std::uint32_t at = blocks_[id].begin; at < blocks_[id].end && state.is_exact; at += instruction_size) {
            const auto place = std::uint32_t(state.registers[stack_pointer]);
            if (places.empty() || places.back().place != place) places.push_back({at, place});
            follow_stack(code_[at / instruction_size], state, size);
        }
    }
    return true;
}

/// Whether a function may call itself, on whichever way; calls through registers lead to all that they may.
bool Lifter::has_recursion() const {
    // 1: being looked at, 2: done.
    std::vector<std::uint8_t> state(contexts_.size());
    std::vector<std::vector<unsigned>> callees(contexts_.size());
    for (unsigned callee = 0; callee < contexts_.size(); ++callee)
        for (const Caller& caller : contexts_[callee].callers) callees[caller.context].push_back(callee);
    std::vector<std::pair<unsigned, std::size_t>> way{{0, 0}};
    state[0] = 1;
    while (!way.empty()) {
        auto& [context, next] = way.back();
        if (next == callees[context].size()) {
            state[context] = 2;
            way.pop_back();
            continue;
        }
        const unsigned callee = callees[context][next++];
        if (state[callee] == 1) return true;
        if (state[callee] == 2) continue;
        state[callee] = 1;
        way.emplace_back(callee, 0);
    }
    return false;
}

/// Whether the branch at the block's end asks what an atomic operation left that is there for all spaces, by
/// Lifter::done_by_hardware.
bool Lifter::always_branches(const Block& block) const {
    const Instruction& last = code_[block.end / instruction_size - 1];
    if (last.form->id != FormId::bra || last.guard_negated || last.guard == true_predicate || last.guard_uniform)
        return false;
    if (last.operands[0].index != true_predicate || last.operands[0].negated) return false;
    Operand asked;
    asked.kind = Kind::predicate;
    asked.index = last.guard;
    for (std::uint32_t at = last.address; at > block.begin; at -= instruction_size) {
        const Instruction& inst = code_[at / instruction_size - 1];
        if (inst.form->rule == "r2p") return false;
        if (!writes_predicate(inst, asked.index)) continue;
        if (!is_unconditional(inst) || inst.operands[0].index != asked.index) return false;
        if (inst.form->rule == "atomic" || inst.form->rule == "compare_and_swap") return true;
        // A copy.
        const auto is_true = [&](const Operand& operand) {
            return operand.kind == Kind::predicate && operand.index == true_predicate && !operand.negated;
        };
        if (inst.form->id != FormId::plop3 || inst.operands[1].index != true_predicate || inst.operands[2].negated ||
            !is_true(inst.operands[3]) || !is_true(inst.operands[4]) || inst.operands[5].value != 0x80)
            return false;
        asked.index = inst.operands[2].index;
        if (asked.index == true_predicate) return false;
    }
    return false;
}

void Lifter::find_successors(unsigned id) {
    const Block block = blocks_[id];
    const Instruction& last = code_[block.end / instruction_size - 1];
    std::vector<unsigned> successors;
    bool falls_through = true;
    const std::string_view rule = last.form == nullptr ? std::string_view() : last.form->rule;
    const std::uint32_t target =
        last.operand_count > 0 ? std::uint32_t(last.operands[last.operand_count - 1].value) : 0;
    const auto is_certain = [&](const Operand& also) {
        return is_unconditional(last) && also.index == true_predicate && !also.negated;
    };
    if (rule == "branch") {
        // Of BRA.DIV's ways one is taken. BRA.CONV leaves collectives out whose results nobody wants, which lanes that
        // are elsewhere wait at.
        const bool is_slow = last.has("DIV") && slow_way_differs(code_, last.address);
        const bool has_one_way = last.has("DIV") || last.has("CONV");
        if (!has_one_way || is_slow) successors.push_back(block_at(block.context, target));
        const Operand& also = last.operands[last.form->id == FormId::bra_uniform ? 1 : 0];
        falls_through = has_one_way ? !is_slow : !is_certain(also) && !always_branches(block);
    } else if (rule == "exit") {
        falls_through = !is_certain(last.operands[0]);
    } else if (rule == "trap") {
        falls_through = !is_unconditional(last) || !last.has("TRAP");
    } else if (rule == "branch_indexed") {
        const auto found = std::find_if(facts_.branch_targets.begin(), facts_.branch_targets.end(),
                                        [&](const auto& entry) { return entry.branch == last.address; });
        if (found == facts_.branch_targets.end()) throw Unliftable("BRX without a list of targets");
        for (const std::uint32_t place : found->targets) successors.push_back(block_at(block.context, place));
        falls_through = !is_unconditional(last);
    } else if (rule == "call" && ends_block(last)) {
        // Without a way back it is a jump.
        const unsigned context =
            passes_return(last) ? context_of_callee(block.context, last.address, target) : block.context;
        successors.push_back(block_at(context, target));
        falls_through = !is_certain(last.operands[0]);
    } else if ((rule == "call_indexed" || rule == "call_absolute") && ends_block(last)) {
        const auto& functions = rule == "call_indexed" ? pointed_functions_ : absolute_functions_;
        for (const std::uint32_t function : functions)
            successors.push_back(block_at(context_of_callee(block.context, last.address, function), function));
        // What the runtime provides returns by itself. Where no function's address stands anywhere, a pointer comes
        // from elsewhere (a destructor that nobody set: Numba's arrays) and the lanes that come here trap.
        falls_through = rule == "call_absolute" || !is_unconditional(last);
    } else if (rule == "ret") {
        const Operand& from = last.operands[1];
        std::vector<unsigned>& returns = contexts_[block.context].returns;
        if (std::find(returns.begin(), returns.end(), id) == returns.end()) returns.push_back(id);
        const std::vector<Caller> callers = contexts_[block.context].callers;
        if (callers.empty()) throw Unliftable("RET outside of a call");
        // Where to is what the caller passed, in whichever register: the instruction behind the call, whose address
        // must be among the code's constants, or come from LEPC before the call.
        for (const Caller& caller : callers) {
            const std::uint32_t behind = caller.call + instruction_size;
            const auto passes = [&](const Instruction& before) {
                return before.form != nullptr && before.form->id == FormId::lepc && is_unconditional(before) &&
                       last.has("ABS") && before.operands[0].index == from.index &&
                       std::int64_t(before.address) + from.value == std::int64_t(behind);
            };
            if (!is_constant(behind) && !(caller.call > 0 && passes(code_[caller.call / instruction_size - 1])))
                throw Unliftable("a return to where is not known");
            successors.push_back(block_at(caller.context, behind));
        }
        falls_through = !is_certain(last.operands[0]);
    }
    if (falls_through) {
        if (section_ends_.count(block.end) != 0) throw Unliftable("code that runs past its end");
        successors.push_back(block_at(block.context, block.end));
    }
    blocks_[id].successors = std::move(successors);
    blocks_[id].falls_through = falls_through;
}

/// Whether a register is given this place of code: as it is, or as a distance from the section's beginning.
bool Lifter::is_constant(std::uint32_t address) const {
    if (std::binary_search(addresses_.begin(), addresses_.end(), address)) return true;
    for (const auto& [section, base] : bases_)
        if (base != 0 && address >= base && address - base < cubin_.sections[section].bytes.size())
            return std::binary_search(addresses_.begin(), addresses_.end(), address - base);
    return false;
}

/// Whether whom it calls can come back. CALL is a plain jump, too: `@P CALL.REL` over a branch back, out of a loop.
bool Lifter::passes_return(const Instruction& call) const {
    const std::uint32_t behind = call.address + instruction_size;
    if (section_ends_.count(behind) == 0 && !is_unconditional(call) &&
        call.operands[1].value == std::int64_t(behind) + instruction_size) {
        const Instruction& next = code_[behind / instruction_size];
        if (next.form != nullptr && next.form->rule == "branch" && is_unconditional(next)) return false;
    }
    if (is_constant(behind)) return true;
    if (call.address < instruction_size) return false;
    const Instruction& before = code_[call.address / instruction_size - 1];
    return before.form != nullptr && before.form->id == FormId::lepc;
}

/// Where a callee's blocks are: a copy of them for each call, or one for all.
unsigned Lifter::context_of_callee(unsigned caller, std::uint32_t call, std::uint32_t target) {
    if (merges_calls_) {
        const auto [place, is_new] = context_ids_.emplace(std::pair(0u, target), unsigned(contexts_.size()));
        const unsigned callee = place->second;
        if (is_new) contexts_.emplace_back();
        std::vector<Caller>& callers = contexts_[callee].callers;
        if (std::none_of(callers.begin(), callers.end(),
                         [&](const Caller& known) { return known.context == caller && known.call == call; })) {
            callers.push_back({caller, call});
            changed_contexts_.insert(callee);
        }
        return callee;
    }
    const unsigned depth = contexts_[caller].depth + 1;
    if (depth > depth_limit) throw TooManyCalls();
    const auto [place, is_new] = context_ids_.emplace(std::pair(caller, call), unsigned(contexts_.size()));
    if (is_new) {
        if (contexts_.size() == context_limit) throw TooManyCalls();
        Context& callee = contexts_.emplace_back();
        callee.callers.push_back({caller, call});
        callee.depth = depth;
    }
    return place->second;
}

/// Whether control goes elsewhere behind the instruction.
bool Lifter::ends_block(const Instruction& inst) const {
    if (inst.form == nullptr) return false;
    const std::string_view rule = inst.form->rule;
    if (rule == "call") // else it is the runtime's, or a statement
        return std::uint64_t(inst.operands[1].value) >> 32 == 0 && known_calls_.count(inst.address) == 0;
    if (rule == "call_absolute") return !absolute_functions_.empty();
    return rule == "branch" || rule == "exit" || rule == "ret" || rule == "branch_indexed" || rule == "trap" ||
           rule == "call_indexed";
}

void Lifter::find_blocks() {
    contexts_.emplace_back();
    block_at(0, 0);
    for (unsigned id = 0; id < blocks_.size(); ++id) {
        std::uint32_t end = blocks_[id].begin;
        do {
            const std::size_t i = end / instruction_size;
            if (!is_known_[i]) throw Unliftable(describe(code_[i]) + " at " + place(end));
            end += instruction_size;
        } while (section_ends_.count(end) == 0 && !leaders_[end / instruction_size]);
        blocks_[id].end = end;
        find_successors(id);
        // Who returns to callers that were found later.
        while (!changed_contexts_.empty()) {
            const std::vector<unsigned> returns = contexts_[*changed_contexts_.begin()].returns;
            changed_contexts_.erase(changed_contexts_.begin());
            for (const unsigned block : returns) find_successors(block);
        }
        // A return address in the middle of a block that another way leads through: begin anew there.
        for (const unsigned successor : blocks_[id].successors)
            if (!leaders_[blocks_[successor].begin / instruction_size])
                throw Unliftable("a return into the middle of a block");
    }
}

/// Calls of ptxas' own functions.
void Lifter::find_known_calls() {
    std::vector<NamedFunction> functions;
    for (const CubinSymbol& symbol : cubin_.symbols) {
        if (symbol.section >= cubin_.sections.size() || !symbol.name.starts_with("$__internal_")) continue;
        const auto base = bases_.find(symbol.section);
        if (base == bases_.end() || symbol.size == 0) continue;
        const std::uint64_t begin = base->second + symbol.value, end = begin + symbol.size;
        if (end <= code_.size() * instruction_size && begin < end)
            functions.push_back({symbol.name, std::uint32_t(begin), std::uint32_t(end)});
    }
    if (functions.empty()) return;
    std::vector<std::uint32_t> targets;
    for (const Instruction& inst : code_)
        if (inst.form != nullptr && (inst.form->rule == "branch" || inst.form->rule == "call") &&
            inst.operand_count > 0)
            targets.push_back(std::uint32_t(inst.operands[inst.operand_count - 1].value));
    for (const auto& entry : facts_.branch_targets)
        targets.insert(targets.end(), entry.targets.begin(), entry.targets.end());
    targets.insert(targets.end(), pointed_functions_.begin(), pointed_functions_.end());
    std::sort(targets.begin(), targets.end());
    known_calls_ = sass::find_known_calls(code_, functions, targets);
    for (const auto& [place, known] : known_calls_)
        if (known.is_division) known_checks_.insert(known.check);
}

void Lifter::discover() {
    decode_sections();
    find_known_calls();
    leaders_.assign(code_.size() + 1, false);
    const auto lead = [&](std::int64_t address) {
        if (address >= 0 && std::size_t(address / instruction_size) < code_.size())
            leaders_[std::size_t(address / instruction_size)] = true;
    };
    for (const Instruction& inst : code_) {
        if (!ends_block(inst)) continue;
        if (inst.form->rule == "branch" || inst.form->rule == "call") lead(inst.operands[inst.operand_count - 1].value);
        lead(std::int64_t(inst.address) + instruction_size);
    }
    for (const auto& entry : facts_.branch_targets)
        for (const std::uint32_t target : entry.targets) lead(target);
    for (const std::uint32_t function : pointed_functions_) lead(function);
    lead(0);
    try {
        find_blocks();
    } catch (const TooManyCalls&) {
        merges_calls_ = true;
        contexts_.clear();
        blocks_.clear();
        block_ids_.clear();
        context_ids_.clear();
        find_blocks();
    }
    choose_stack();
}

} // namespace ptarmigan::sass
