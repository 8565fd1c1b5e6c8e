// SPDX-License-Identifier: Apache-2.0
// Registers, pairs and constants: what is known of them, how they are read and written.
#include "frontend/sass/lifter.h"
#include "frontend/sass/special_registers.h"

#include <algorithm>
#include <cstdio>
#include <optional>

namespace ptarmigan::sass {
namespace {

using Kind = Operand::Kind;

} // namespace

std::string Lifter::temporary() {
    return "%t" + std::to_string(temporaries_++);
}
std::string Lifter::wide_temporary() {
    return "%q" + std::to_string(wide_temporaries_++);
}
std::string Lifter::predicate_temporary() {
    return "%c" + std::to_string(predicate_temporaries_++);
}

int Lifter::name_wide(const std::string& text) {
    const auto [place, is_new] = wide_ids_.emplace(text, int(wide_names_.size()));
    if (is_new) wide_names_.push_back(text);
    return place->second;
}

Value Lifter::value_of(std::string text) {
    Value value;
    value.text = std::move(text);
    value.number = next_number_++;
    return value;
}

Value Lifter::constant(std::uint32_t bits) {
    Value value;
    value.text = hexadecimal(bits);
    value.constant = bits;
    return value;
}

// --- reading ---

unsigned Lifter::index_of(const Operand& operand) {
    if (operand.kind == Kind::uniform)
        return operand.index == zero_uniform ? unsigned(zero_register) : uniform_base + operand.index;
    return operand.index;
}

std::string Lifter::register_name(unsigned index) {
    return index >= uniform_base ? "%u" + std::to_string(index - uniform_base) : "%r" + std::to_string(index);
}

Value Lifter::read_index(unsigned index) {
    if (index == zero_register) return constant(0);
    if (index >= register_count) refuse_here("a register out of range");
    Register& known = registers_[index];
    if (known.constant) return constant(*known.constant);
    if (known.is_window_high) return shared_window_high();
    if (known.number == 0) known.number = next_number_++;
    Value value;
    value.text = register_name(index);
    value.wide = known.wide;
    value.is_high = known.is_high;
    value.number = known.number;
    value.sign_of = known.sign_of;
    return value;
}

Value Lifter::read_plain(const Operand& operand) {
    switch (operand.kind) {
    case Kind::reg:
    case Kind::uniform: return read_index(index_of(operand));
    case Kind::immediate: return constant(std::uint32_t(operand.value));
    case Kind::constant:
        if (operand.bindless || operand.index != zero_register) refuse_here("a constant by a register");
        return constant_word(operand.bank, operand.value);
    default: refuse_here("an operand of a kind that is not known");
    }
}

Value Lifter::read(const Operand& operand) {
    Value value = read_plain(operand);
    if (operand.negated) {
        if (value.constant) return constant(0u - *value.constant);
        const std::string result = temporary();
        emit("neg.s32 " + result + ", " + value.text);
        return value_of(result);
    }
    if (operand.inverted) {
        if (value.constant) return constant(~*value.constant);
        const std::string result = temporary();
        emit("not.b32 " + result + ", " + value.text);
        return value_of(result);
    }
    return value;
}

std::string Lifter::with_sign(const Operand& operand, std::string text, const char* type) {
    const bool is_wide = std::string_view(type) == ".f64";
    const auto apply = [&](const char* opcode) {
        const std::string result = is_wide ? wide_temporary() : temporary();
        emit(std::string(opcode) + type + " " + result + ", " + text);
        text = result;
    };
    if (operand.absolute) apply("abs");
    if (operand.negated) apply("neg");
    return text;
}

std::string Lifter::read_float(const Operand& operand) {
    Value value = read_plain(operand);
    if (value.constant) {
        std::uint32_t bits = *value.constant;
        if (operand.absolute) bits &= 0x7fffffffu;
        if (operand.negated) bits ^= 0x80000000u;
        char text[16];
        std::snprintf(text, sizeof text, "0f%08X", bits);
        return text;
    }
    std::string text = value.text;
    return with_sign(operand, text, ".f32");
}

std::string Lifter::read_double(const Operand& operand) {
    const auto literal = [&](std::uint64_t bits) {
        if (operand.absolute) bits &= ~(std::uint64_t(1) << 63);
        if (operand.negated) bits ^= std::uint64_t(1) << 63;
        char text[24];
        std::snprintf(text, sizeof text, "0d%016llX", static_cast<unsigned long long>(bits));
        return std::string(text);
    };
    if (operand.kind == Kind::immediate) return literal(std::uint64_t(std::uint32_t(operand.value)) << 32);
    if (operand.kind == Kind::reg && operand.index == zero_register) return literal(0);
    std::string text;
    if (operand.kind == Kind::constant) {
        const Value low = constant_word(operand.bank, operand.value),
                    high = constant_word(operand.bank, operand.value + 4);
        if (low.constant && high.constant) return literal(std::uint64_t(*high.constant) << 32 | *low.constant);
        text = wide_text(join(low, high));
    } else {
        text = wide_text(read_pair(operand));
    }
    return with_sign(operand, text, ".f64");
}

Value Lifter::shared_window_high() {
    Value value = value_of(std::string(window_high));
    value.is_window_high = true;
    return value;
}

Value Lifter::low_half(int wide) {
    Value value = value_of(temporary());
    emit("cvt.u32.u64 " + value.text + ", " + wide_text(wide));
    value.wide = wide;
    return value;
}
Value Lifter::high_half(int wide) {
    Value value = value_of(temporary());
    const std::string rest = temporary();
    emit("mov.b64 {" + rest + ", " + value.text + "}, " + wide_text(wide));
    value.wide = wide;
    value.is_high = true;
    return value;
}

int Lifter::join(const Value& low, const Value& high) {
    if (low.wide >= 0 && low.wide == high.wide && !low.is_high && high.is_high) return low.wide;
    const std::string result = wide_temporary();
    if (high.is_window_high) { // a shared address made generic
        const std::string from_start = wide_temporary();
        const std::string offset = temporary();
        emit("sub.s32 " + offset + ", " + low.text + ", " + std::to_string(system_shared));
        emit("cvt.u64.u32 " + from_start + ", " + offset);
        emit("add.s64 " + result + ", " + from_start + ", %shared_window");
        return name_wide(result);
    }
    const auto in_register = [&](const Value& value) {
        if (!value.constant) return value.text;
        const std::string copy = temporary();
        emit("mov.b32 " + copy + ", " + value.text);
        return copy;
    };
    if (low.constant && high.constant)
        emit("mov.b64 " + result + ", " + hexadecimal(std::uint64_t(*high.constant) << 32 | *low.constant));
    else if (high.constant && *high.constant == 0)
        emit("cvt.u64.u32 " + result + ", " + low.text);
    else if (high.sign_of != 0 && high.sign_of == low.number)
        emit("cvt.s64.s32 " + result + ", " + low.text);
    else
        emit("mov.b64 " + result + ", {" + in_register(low) + ", " + in_register(high) + "}");
    const int wide = name_wide(result);
    if (low.constant && high.constant) wide_constants_[wide] = std::uint64_t(*high.constant) << 32 | *low.constant;
    return wide;
}

int Lifter::pair_at(unsigned index) {
    if (index == zero_register) return join(constant(0), constant(0));
    if (index % 2 != 0) refuse_here("a pair at an odd register");
    const Value low = read_index(index), high = read_index(index + 1);
    const int result = join(low, high);
    // Both halves are known as those of the result now.
    if (low.wide != result && !low.constant && !high.constant) {
        registers_[index].wide = registers_[index + 1].wide = result;
        registers_[index].is_high = false;
        registers_[index + 1].is_high = true;
    }
    return result;
}

int Lifter::read_pair(const Operand& operand) {
    switch (operand.kind) {
    case Kind::reg:
    case Kind::uniform: return pair_at(index_of(operand));
    // As with doubles: ptxas writes I2F.F64.U64 d, 0x5 for 5 << 32, and takes a register for 5.
    case Kind::immediate: return join(constant(0), constant(std::uint32_t(operand.value)));
    case Kind::constant:
        if (operand.bindless || operand.index != zero_register) refuse_here("a constant by a register");
        return join(constant_word(operand.bank, operand.value), constant_word(operand.bank, operand.value + 4));
    default: refuse_here("an operand of a kind that is not known");
    }
}

// --- constants ---

std::optional<std::uint32_t> Lifter::constant_bytes(unsigned bank, std::int64_t offset) {
    const std::string name = ".nv.constant" + std::to_string(bank);
    const CubinSection* section = cubin_.find_section(name + "." + std::string(kernel_.name));
    if (section == nullptr) section = cubin_.find_section(name);
    if (section == nullptr || offset < 0 || std::uint64_t(offset) + 4 > section->bytes.size()) return {};
    for (const CubinRelocation& relocation : section->relocations)
        if (std::int64_t(relocation.offset) < offset + 4 && std::int64_t(relocation.offset) + 8 > offset) return {};
    std::uint32_t bits = 0;
    for (unsigned i = 0; i < 4; ++i) bits |= std::uint32_t(section->bytes[std::size_t(offset) + i]) << 8 * i;
    return bits;
}

/// A half of a variable's address as an immediate: MOV or UMOV d, 32@lo(name) or 32@hi(name).
void Lifter::move_address(const Instruction& inst, const CubinRelocation* found) {
    constexpr std::uint32_t low_half_type = 56, high_half_type = 57;
    const Operand& source = inst.operands[1];
    const bool is_move =
        found != nullptr && inst.form->rule == "mov" && source.kind == Kind::immediate && source.value == 0;
    const bool is_kernel = is_move && (found->type == kernel_low_half || found->type == kernel_high_half);
    if (!is_move || (!is_kernel && found->type != low_half_type && found->type != high_half_type))
        refuse_here("a relocated operand");
    const CubinKernel* const kernel = is_kernel ? kernel_of(cubin_, *found) : nullptr;
    if (is_kernel && kernel == nullptr) refuse_here("the address of a kernel that is not there");
    const std::string place =
        is_kernel ? std::string(kernel->name) : variable_place(cubin_.symbols[found->symbol], found->addend);
    int& known = variable_pairs_[place].number;
    if (known < 0) {
        const std::string pair = wide_temporary();
        emit("mov.u64 " + pair + ", " + place);
        known = name_wide(pair);
    }
    const bool is_low = found->type == low_half_type || found->type == kernel_low_half;
    write(inst.operands[0], is_low ? low_half(known) : high_half(known));
}

/// Only of such a section there is a variable.
bool Lifter::has_section(std::string_view name) const {
    const CubinSection* section = cubin_.find_section(name);
    return section != nullptr && section->size != 0;
}

/// Where a variable of global memory lies in the lifted module's.
std::string Lifter::variable_place(const CubinSymbol& symbol, std::int64_t addend) {
    if (symbol.section >= cubin_.sections.size() || (symbol.type != 1 && symbol.type != 3))
        refuse_here("the address of " + std::string(symbol.name));
    const std::string_view home = cubin_.sections[symbol.section].name;
    if ((home != ".nv.global" && home != ".nv.global.init") || !has_section(home))
        refuse_here("the address of " + std::string(symbol.name));
    return (home == ".nv.global" ? "sass_global+" : "sass_global_init+") +
           std::to_string(symbol.value + std::uint64_t(addend));
}

// --- predicates ---

Condition Lifter::condition(const Operand& operand) {
    Condition result;
    if (operand.index == true_predicate) {
        result.value = !operand.negated;
        return result;
    }
    result.name = (operand.kind == Kind::uniform_predicate ? "%up" : "%p") + std::to_string(operand.index);
    result.negated = operand.negated;
    return result;
}

Condition Lifter::guard_condition() const {
    Operand guard;
    guard.kind = current_->guard_uniform ? Kind::uniform_predicate : Kind::predicate;
    guard.index = current_->guard;
    guard.negated = current_->guard_negated;
    Condition result = condition(guard);
    if (!guard_copy_.empty()) result.name = guard_copy_;
    return result;
}

/// An instruction that may write its own guard is guarded by a copy: it writes several things, one after the other.
void Lifter::keep_guard(const Instruction& inst) {
    guard_copy_.clear();
    if (inst.guard == true_predicate) return;
    const Kind kind = inst.guard_uniform ? Kind::uniform_predicate : Kind::predicate;
    bool may_write = inst.form->rule == "r2p";
    for (unsigned i = 0; i < inst.operand_count; ++i)
        may_write = may_write || (inst.operands[i].kind == kind && inst.operands[i].index == inst.guard);
    if (!may_write) return;
    const std::string copy = predicate_temporary();
    emit("mov.pred " + copy + ", " + guard_condition().name);
    guard_copy_ = copy;
}

std::string Lifter::as_register(const Condition& condition) {
    if (condition.name.empty()) return condition.value ? "%ptrue" : "%pfalse";
    if (!condition.negated) return condition.name;
    const std::string result = predicate_temporary();
    emit("not.pred " + result + ", " + condition.name);
    return result;
}

void Lifter::write_predicate(const Operand& operand, const std::string& value) {
    if (operand.kind == Kind::none || operand.index == true_predicate) return;
    const bool uniform = operand.kind == Kind::uniform_predicate;
    const unsigned written = predicate_index(operand.index, uniform);
    carries_[written].known = false;
    std::erase_if(guarded_sines_, [&](const auto& one) { return one.second.guard == written; });
    emit_guarded("mov.pred " + ((uniform ? "%up" : "%p") + std::to_string(operand.index)) + ", " + value);
}
void Lifter::write_predicate(const Operand& operand, bool value) {
    write_predicate(operand, std::string(value ? "%ptrue" : "%pfalse"));
}

// --- writing ---

void Lifter::write(const Operand& operand, Value value) {
    write_index(index_of(operand), std::move(value));
}

/// What the table says of an instruction's results is what its rule writes: analyses before lifting ask the table. A
/// call's are its function's.
void Lifter::check_is_result(unsigned index) {
    if (current_->form->rule.starts_with("call")) return;
    for (const Instruction& inst : lifted_)
        for (unsigned i = 0; i < inst.operand_count; ++i) {
            const Operand& operand = inst.operands[i];
            if (!inst.form->operands[i].is_result || (operand.kind != Kind::reg && operand.kind != Kind::uniform))
                continue;
            const unsigned first = index_of(operand);
            if (index >= first && index < first + registers_of(inst, i)) return;
        }
    refuse_here("a result that its row does not name");
}

void Lifter::write_index(unsigned index, Value value) {
    if (index == zero_register) return;
    if (index >= register_count) refuse_here("a register out of range");
    check_is_result(index);
    pairs_.reset(index / 2);
    pairs_.reset(window_high_bits + index);
    forget_sine_argument(index);
    Register& known = registers_[index];
    known = Register{};
    if (value.is_window_high && current_->guard == true_predicate && !current_->guard_negated) {
        emit("mov.b32 " + register_name(index) + ", " + value.text);
        known.is_window_high = true;
        known.number = next_number_++;
        pairs_.set(window_high_bits + index);
        return;
    }
    emit_guarded("mov.b32 " + register_name(index) + ", " + value.text);
    if (index == stack_pointer) check_stack_pointer();
    if (current_->guard != true_predicate || current_->guard_negated) {
        known.number = next_number_++;
        return;
    }
    known.wide = value.wide;
    known.is_high = value.is_high;
    known.number = value.number != 0 ? value.number : next_number_++;
    known.sign_of = value.sign_of;
    known.constant = value.constant;
    const unsigned even = index & ~1u;
    const Register &low = registers_[even], &high = registers_[even + 1];
    if (low.wide >= 0 && low.wide == high.wide && !low.is_high && high.is_high && even + 1 < register_count) {
        keep_pair(even, low.wide);
        pairs_.set(even / 2);
    }
}

/// A stack that ends is a fault, as with recursion in PTX.
void Lifter::check_stack_pointer() {
    if (stack_ == Stack::fixed) return;
    const std::string ends = predicate_temporary(), pointer = register_name(stack_pointer);
    if (stack_ == Stack::checked)
        emit("setp.lt.s32 " + ends + ", " + pointer + ", 0");
    else
        emit("setp.lt.u32 " + ends + ", " + pointer + ", %stack_lowest");
    if (writes_) text_ += "\t@" + ends + " trap;\n";
}

std::string Lifter::pair_name(unsigned even) {
    return (even >= uniform_base ? "%ud" : "%d") + std::to_string(even % uniform_base);
}

void Lifter::keep_pair(unsigned even, int wide) {
    const std::string name = pair_name(even);
    const int own = name_wide(name);
    if (own == wide) return;
    emit("mov.b64 " + name + ", " + wide_text(wide));
    for (unsigned i = 0; i < register_count; ++i)
        if (registers_[i].wide == own) registers_[i].wide = -1;
    for (Carry& carry : carries_)
        for (Value* part : {&carry.a, &carry.b, &carry.c})
            if (part->wide == own) part->wide = -1;
}

void Lifter::write_pair(const Operand& operand, int wide) {
    const unsigned index = index_of(operand);
    if (index == zero_register) return;
    if (index % 2 != 0 || index + 1 >= register_count) refuse_here("a pair at an odd register");
    check_is_result(index + 1); // a sum's upper half may bring the lower one along, as it was
    if (index == (stack_pointer & ~1u) && stack_ != Stack::fixed) refuse_here("R1 in a pair");
    const bool guarded = current_->guard != true_predicate || current_->guard_negated;
    if (guarded) {
        const int old = pair_at(index);
        const std::string result = wide_temporary();
        emit("selp.b64 " + result + ", " + wide_text(wide) + ", " + wide_text(old) + ", " +
             as_register(guard_condition()));
        wide = name_wide(result);
    }
    emit("mov.b64 {" + register_name(index) + ", " + register_name(index + 1) + "}, " + wide_text(wide));
    keep_pair(index, wide);
    for (unsigned half = 0; half < 2; ++half) {
        Register& known = registers_[index + half];
        known = Register{};
        known.wide = wide;
        known.is_high = half == 1;
        known.number = next_number_++;
        if (const auto bits = wide_constants_.find(wide); bits != wide_constants_.end())
            known.constant = std::uint32_t(bits->second >> 32 * half);
        pairs_.reset(window_high_bits + index + half);
        forget_sine_argument(index + half);
    }
    pairs_.set(index / 2);
}

} // namespace ptarmigan::sass
