// SPDX-License-Identifier: Apache-2.0
// Blocks of a kernel, found from its entry: successors, calls cloned, the stack followed.
#include "frontend/sass/lifter.h"
#include "frontend/sass/special_registers.h"

#include <algorithm>

namespace ptarmigan::sass {
namespace {

using Kind = Operand::Kind;

constexpr unsigned context_limit = 2000, block_limit = 400'000, depth_limit = 24;

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
};
constexpr unsigned stack_end = 1;

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
        if (target == stack_end) {
            if (!result) return false;
            // Under a condition the lower of both.
            if (!is_certain && before != state.registers.end()) result = std::min(*result, before->second);
            state.registers[target] = *result;
            return *result >= 0;
        }
        unsigned count = inst.has("128")                                                              ? 4
                         : inst.has("64") || inst.has("U64") || inst.has("S64") || inst.has("F64.RN") ? 2
                                                                                                      : 1;
        if (rule == "imad_wide" || rule == "cs2r" || rule.starts_with('d') || inst.form->name.ends_with("64"))
            count = 2;
        if (rule == "hmma" || rule == "imma" || rule == "ldsm") count = 4;
        for (unsigned k = 0; k < count; ++k) state.registers.erase(target + k);
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

/// R1 is what it is on all ways, and does not go further down than what the file says of the stack's size: alloca does.
void Lifter::check_stack() const {
    if (kernel_.stack_size == 0 && !names_local_memory()) return; // R1 is a register like others
    const auto size = std::int64_t(kernel_.stack_size);
    const auto moves_stack = [](const Instruction& inst) {
        if (inst.form == nullptr || inst.form->rule == "load_constant") return false;
        if ((inst.form->rule == "mov" || inst.form->rule == "imad") &&
            inst.operands[inst.form->rule == "mov" ? 1 : 4].kind == Kind::constant)
            return false;
        return inst.operand_count > 0 && inst.operands[0].kind == Kind::reg && inst.operands[0].index == stack_end;
    };
    if (std::none_of(code_.begin(), code_.end(), moves_stack)) return;
    std::vector<std::optional<StackState>> entries(blocks_.size());
    std::vector<unsigned> work{0};
    entries[0] = StackState{{{stack_end, size}}, {}};
    std::size_t steps = 64 + 64 * blocks_.size();
    while (!work.empty()) {
        const Block& block = blocks_[work.back()];
        StackState state = *entries[work.back()];
        work.pop_back();
        for (std::uint32_t at = block.begin; at < block.end; at += instruction_size)
            if (steps == 0 || !follow_stack(code_[at / instruction_size], state, size))
                throw Unliftable("a stack that grows (alloca) at " + hexadecimal(at));
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
            const std::int64_t lowest = std::min(entry->registers[stack_end], state.registers[stack_end]);
            changes = entry->registers[stack_end] != lowest;
            entry->registers[stack_end] = state.registers[stack_end] = lowest;
            keep_common(entry->registers, state.registers);
            keep_common(entry->kept, state.kept);
            if (changes) work.push_back(successor);
        }
    }
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
    if (rule == "branch") {
        if (!last.has("DIV")) successors.push_back(block_at(block.context, target));
        const Operand& also = last.operands[last.form->id == FormId::bra_uniform ? 1 : 0];
        falls_through = last.has("DIV") || (!last.has("CONV") &&
                                            (!is_unconditional(last) || also.index != true_predicate || also.negated) &&
                                            !always_branches(block));
    } else if (rule == "exit") {
        const Operand& also = last.operands[0];
        falls_through = !is_unconditional(last) || also.index != true_predicate || also.negated;
    } else if (rule == "trap") {
        falls_through = !is_unconditional(last) || !last.has("TRAP");
    } else if (rule == "branch_indexed") {
        const auto found = std::find_if(kernel_.branch_targets.begin(), kernel_.branch_targets.end(),
                                        [&](const auto& entry) { return entry.branch == last.address; });
        if (found == kernel_.branch_targets.end()) throw Unliftable("BRX without a list of targets");
        for (const std::uint32_t place : found->targets) successors.push_back(block_at(block.context, place));
        falls_through = !is_unconditional(last);
    } else if (rule == "call" || rule == "call_indexed") {
        const Context& caller = contexts_[block.context];
        if (caller.depth == depth_limit) throw Unliftable("calls that nest deeply, or recursion");
        const auto [place, is_new] =
            context_ids_.emplace(std::pair(block.context, last.address), unsigned(contexts_.size()));
        if (is_new) {
            if (contexts_.size() == context_limit) throw Unliftable("too many calls");
            Context callee;
            callee.parent = int(block.context);
            callee.call = last.address;
            callee.depth = caller.depth + 1;
            contexts_.push_back(std::move(callee));
        }
        if (rule == "call")
            successors.push_back(block_at(place->second, target));
        else
            for (const std::uint32_t function : pointed_functions_)
                successors.push_back(block_at(place->second, function));
        if (successors.empty()) throw Unliftable("a call of functions that are not known");
        falls_through = !is_unconditional(last);
    } else if (rule == "ret") {
        const Context& context = contexts_[block.context];
        if (context.parent < 0) throw Unliftable("RET outside of a call");
        // Where to is what the caller passed, in whichever register: the instruction behind the call, whose address
        // must be among the code's constants, or come from LEPC before the call.
        const std::uint32_t behind = context.call + instruction_size;
        const bool is_passed = std::binary_search(addresses_.begin(), addresses_.end(), behind);
        const Operand& from = last.operands[1];
        const auto passes = [&](const Instruction& before) {
            return before.form != nullptr && before.form->id == FormId::lepc && is_unconditional(before) &&
                   last.has("ABS") && before.operands[0].index == from.index &&
                   std::int64_t(before.address) + from.value == std::int64_t(behind);
        };
        if (!is_passed && !(context.call > 0 && passes(code_[context.call / instruction_size - 1])))
            throw Unliftable("a return to where is not known");
        successors.push_back(block_at(unsigned(context.parent), behind));
        falls_through = !is_unconditional(last);
    }
    if (falls_through) {
        if (block.end / instruction_size >= code_.size()) throw Unliftable("code that runs past its end");
        successors.push_back(block_at(block.context, block.end));
    }
    blocks_[id].successors = std::move(successors);
    blocks_[id].falls_through = falls_through;
}

/// Functions of the kernel whose places stand in bank 2, in variables or among the code's immediate operands.
void Lifter::find_pointed_functions() {
    std::set<std::uint64_t> words(addresses_.begin(), addresses_.end());
    for (const std::string& name : {".nv.constant2." + std::string(kernel_.name), std::string(".nv.global.init")}) {
        const CubinSection* section = cubin_.find_section(name);
        if (section == nullptr) continue;
        for (std::size_t at = 0; at + 8 <= section->bytes.size(); at += 8) {
            std::uint64_t word = 0;
            for (unsigned i = 0; i < 8; ++i) word |= std::uint64_t(section->bytes[at + i]) << 8 * i;
            words.insert(word);
        }
    }
    for (const CubinSymbol& symbol : cubin_.symbols)
        if (symbol.type == 2 && symbol.section == kernel_.text && symbol.value != 0 && symbol.value % 16 == 0 &&
            words.count(symbol.value) != 0)
            pointed_functions_.push_back(std::uint32_t(symbol.value));
}

void Lifter::discover() {
    const CubinSection& section = cubin_.sections[kernel_.text];
    const std::size_t count = section.bytes.size() / instruction_size;
    code_.resize(count);
    std::vector<bool> leaders(count + 1), known(count);
    for (std::size_t i = 0; i < count; ++i) {
        Code code;
        for (unsigned byte = 0; byte < 8; ++byte) {
            code.low |= std::uint64_t(section.bytes[16 * i + byte]) << 8 * byte;
            code.high |= std::uint64_t(section.bytes[16 * i + 8 + byte]) << 8 * byte;
        }
        Instruction& inst = code_[i];
        known[i] = decode(code, std::uint32_t(16 * i), inst, cubin_.architecture);
        if (!known[i]) inst.operand_count = 0;
        if (inst.form == nullptr || !known[i]) continue;
        const std::string_view rule = inst.form->rule;
        if (rule == "branch" || rule == "call") {
            const std::int64_t target = inst.operands[inst.operand_count - 1].value;
            if (target >= 0 && std::size_t(target / 16) < count) leaders[std::size_t(target / 16)] = true;
        }
        if (rule == "branch" || rule == "call" || rule == "exit" || rule == "ret" || rule == "branch_indexed" ||
            rule == "trap" || rule == "call_indexed")
            leaders[i + 1] = true;
    }
    for (const Instruction& inst : code_)
        for (unsigned i = 0; i < inst.operand_count; ++i)
            if (inst.operands[i].kind == Kind::immediate) addresses_.push_back(std::uint32_t(inst.operands[i].value));
    std::sort(addresses_.begin(), addresses_.end());
    for (const auto& entry : kernel_.branch_targets)
        for (const std::uint32_t target : entry.targets)
            if (target / 16 < count) leaders[target / 16] = true;
    if (std::any_of(code_.begin(), code_.end(),
                    [](const Instruction& inst) { return inst.form != nullptr && inst.form->rule == "call_indexed"; }))
        find_pointed_functions();
    for (const std::uint32_t function : pointed_functions_)
        if (function / 16 < count) leaders[function / 16] = true;
    for (const CubinRelocation& relocation : section.relocations)
        relocated_.push_back(std::uint32_t(relocation.offset / instruction_size * instruction_size));
    std::sort(relocated_.begin(), relocated_.end());
    contexts_.emplace_back();
    block_at(0, 0);
    for (unsigned id = 0; id < blocks_.size(); ++id) {
        std::uint32_t end = blocks_[id].begin;
        do {
            const std::size_t i = end / instruction_size;
            if (!known[i]) throw Unliftable(describe(code_[i]) + " at " + hexadecimal(end));
            end += instruction_size;
        } while (end / instruction_size < count && !leaders[end / instruction_size]);
        blocks_[id].end = end;
        find_successors(id);
        // A return address in the middle of a block that another way leads through: begin anew there.
        for (const unsigned successor : blocks_[id].successors)
            if (!leaders[blocks_[successor].begin / instruction_size])
                throw Unliftable("a return into the middle of a block");
    }
    check_stack();
}

} // namespace ptarmigan::sass
