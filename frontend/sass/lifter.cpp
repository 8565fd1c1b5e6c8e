// SPDX-License-Identifier: Apache-2.0
// Registers, values and blocks; the rules are in lift_*.cpp.
#include "frontend/sass/lifter.h"
#include "frontend/sass/special_registers.h"

#include <algorithm>
#include <cstdio>

namespace ptarmigan::sass {
namespace {

using Kind = Operand::Kind;

constexpr std::uint32_t instruction_size = 16;
constexpr unsigned context_limit = 2000, block_limit = 400'000, depth_limit = 24;

using Rule = void (Lifter::*)(const Instruction&);
struct NamedRule {
    FormId id;
    Rule rule; ///< null: refused
};
#define LIFT(name) &Lifter::name
#define REFUSE(reason) nullptr
#define SASS_FORM(id, code, layout, syntax, lifting) {FormId::id, lifting},
constexpr NamedRule rules[] = {
#include "frontend/sass/opcode_table.def"
};
#undef SASS_FORM
#undef LIFT
#undef REFUSE

} // namespace

Lifter::Lifter(const Cubin& cubin, const CubinKernel& kernel) : cubin_(cubin), kernel_(kernel) {}

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
    if (statement.find(window_high) != statement.npos)
        refuse_here("the upper half of shared memory's window by itself");
    if (!writes_) return;
    text_ += '\t';
    text_ += statement;
    text_ += ";\n";
}

void Lifter::emit_guarded(const std::string& statement) {
    if (statement.find(window_high) != statement.npos)
        refuse_here("the upper half of shared memory's window by itself");
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

int Lifter::parameter_pair(std::int64_t offset) {
    if (const auto found = parameter_pairs_.find(offset); found != parameter_pairs_.end()) return found->second;
    for (const KernelParameter& parameter : kernel_.parameters) {
        const std::int64_t inside = offset - kernel_.parameter_base - parameter.offset;
        if (inside < 0 || inside + 8 > std::int64_t(parameter.size) || inside % 8 != 0) continue;
        const std::string result = wide_temporary();
        emit("ld.param.b64 " + result + ", [param_" + std::to_string(parameter.ordinal) +
             (inside ? "+" + std::to_string(inside) : "") + "]");
        return parameter_pairs_[offset] = name_wide(result);
    }
    return -1;
}

Value Lifter::constant_word(unsigned bank, std::int64_t offset) {
    if (offset % 4 != 0) refuse_here("a constant that is not aligned");
    const std::string place = "c[" + hexadecimal(bank) + "][" + hexadecimal(std::uint64_t(offset)) + "]";
    if (bank == 0 && offset < std::int64_t(kernel_.parameter_base)) {
        const auto special = [&](const char* name) {
            Value value = value_of(temporary());
            emit("mov.u32 " + value.text + ", " + name);
            return value;
        };
        switch (offset) {
        case 0x0: return special("%ntid.x");
        case 0x4: return special("%ntid.y");
        case 0x8: return special("%ntid.z");
        case 0xc: return special("%nctaid.x");
        case 0x10: return special("%nctaid.y");
        case 0x14: return special("%nctaid.z");
        case 0x18:
        case 0x1c:
            if (cubin_.architecture >= 90) break;
            return offset == 0x18 ? low_half(name_wide("%shared_window")) : high_half(name_wide("%shared_window"));
        case 0x20: return low_half(name_wide("%local_window"));
        case 0x24: return high_half(name_wide("%local_window"));
        case 0x28: return constant(kernel_.stack_size);
        case 0x2c: return special("%dynamic_smem_size");
        case 0x10c: return special("%nsmid");
        case 0x114: return constant(0); // shared memory that the system takes: none
        default: break;
        }
        const std::int64_t constants = cubin_.architecture >= 90 ? 0xd0 : 0x50;
        if ((offset == constants || offset == constants + 4) && cubin_.find_section(".nv.constant3") != nullptr) {
            const int window = name_wide(std::string(constant_window));
            return offset == constants ? low_half(window) : high_half(window);
        }
        const std::int64_t environment = cubin_.architecture >= 90 ? 0x40 : 0x88;
        if (offset >= environment && offset < environment + 12)
            return special(("%envreg" + std::to_string((offset - environment) / 4)).c_str());
        // The descriptor of all global memory, which loads and stores name.
        const std::int64_t descriptor = cubin_.architecture >= 90 ? 0x208 : 0x118;
        if (offset == descriptor || offset == descriptor + 4) return constant(0);
        refuse_here(place);
    }
    if (bank == 0) {
        const std::int64_t even = offset - (offset - std::int64_t(kernel_.parameter_base)) % 8;
        if (const int pair = parameter_pair(even); pair >= 0) return offset == even ? low_half(pair) : high_half(pair);
        for (const KernelParameter& parameter : kernel_.parameters) {
            const std::int64_t inside = offset - kernel_.parameter_base - parameter.offset;
            const std::string name =
                "[param_" + std::to_string(parameter.ordinal) + (inside > 0 ? "+" + std::to_string(inside) : "") + "]";
            if (inside >= 0 && inside + 4 <= std::int64_t(parameter.size)) {
                Value value = value_of(temporary());
                emit("ld.param.b32 " + value.text + ", " + name);
                return value;
            }
            if (inside == 0 && parameter.size < 4) {
                // What lies behind in the word must be no parameter's.
                for (const KernelParameter& other : kernel_.parameters)
                    if (other.offset > parameter.offset && other.offset < parameter.offset + 4) refuse_here(place);
                Value value = value_of(temporary());
                emit((parameter.size == 1 ? "ld.param.u8 " : "ld.param.u16 ") + value.text + ", " + name);
                return value;
            }
        }
        // Padding between parameters: what ptxas made of a read behind an array's end, or of an int as two words.
        const auto is_here = [&](const KernelParameter& parameter) {
            const std::int64_t begin = std::int64_t(kernel_.parameter_base) + parameter.offset;
            return begin < offset + 4 && offset < begin + parameter.size;
        };
        const auto is_behind = [&](const KernelParameter& parameter) {
            return offset < std::int64_t(kernel_.parameter_base) + parameter.offset;
        };
        if (std::none_of(kernel_.parameters.begin(), kernel_.parameters.end(), is_here) &&
            std::any_of(kernel_.parameters.begin(), kernel_.parameters.end(), is_behind))
            return constant(0);
        refuse_here(place);
    }
    if (bank == 2)
        if (const auto bits = constant_bytes(bank, offset)) return constant(*bits);
    if (bank == 3 && cubin_.find_section(".nv.constant3") != nullptr) {
        Value value = value_of(temporary());
        emit("ld.const.b32 " + value.text + ", [sass_constants+" + std::to_string(offset) + "]");
        return value;
    }
    if (bank == 4) {
        const CubinSection* section = cubin_.find_section(".nv.constant4");
        const std::int64_t even = offset & ~std::int64_t(7);
        if (section != nullptr)
            for (const CubinRelocation& relocation : section->relocations) {
                if (std::int64_t(relocation.offset) != even || relocation.type != 2) continue;
                const CubinSymbol& symbol = cubin_.symbols[relocation.symbol];
                if (const auto address = provided_address(symbol.name); symbol.section == 0 && address)
                    return constant(offset == even ? std::uint32_t(*address) : std::uint32_t(*address >> 32));
                const std::string pair = wide_temporary();
                emit("mov.u64 " + pair + ", " + variable_place(symbol, relocation.addend));
                const int wide = name_wide(pair);
                return offset == even ? low_half(wide) : high_half(wide);
            }
    }
    refuse_here(place);
}

/// A half of a variable's address as an immediate: MOV or UMOV d, 32@lo(name) or 32@hi(name).
void Lifter::move_address(const Instruction& inst) {
    constexpr std::uint32_t low_half_type = 56, high_half_type = 57;
    const CubinRelocation* found = nullptr;
    for (const CubinRelocation& relocation : cubin_.sections[kernel_.text].relocations) {
        if (relocation.offset / instruction_size * instruction_size != inst.address) continue;
        if (found != nullptr) refuse_here("a relocated operand");
        found = &relocation;
    }
    const Operand& source = inst.operands[1];
    if (found == nullptr || inst.form->rule != "mov" || source.kind != Kind::immediate || source.value != 0 ||
        (found->type != low_half_type && found->type != high_half_type) || found->symbol >= cubin_.symbols.size())
        refuse_here("a relocated operand");
    const std::string place = variable_place(cubin_.symbols[found->symbol], found->addend);
    int& known = variable_pairs_[place].number;
    if (known < 0) {
        const std::string pair = wide_temporary();
        emit("mov.u64 " + pair + ", " + place);
        known = name_wide(pair);
    }
    write(inst.operands[0], found->type == low_half_type ? low_half(known) : high_half(known));
}

/// Where a variable of global memory lies in the lifted module's.
std::string Lifter::variable_place(const CubinSymbol& symbol, std::int64_t addend) {
    if (symbol.section >= cubin_.sections.size() || (symbol.type != 1 && symbol.type != 3))
        refuse_here("the address of " + std::string(symbol.name));
    const std::string_view home = cubin_.sections[symbol.section].name;
    if (home != ".nv.global" && home != ".nv.global.init") refuse_here("the address of " + std::string(symbol.name));
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
    bool may_write = inst.form->rule == "r2p" && !inst.guard_uniform;
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
    carries_[operand.index + (uniform ? 8u : 0u)].known = false;
    emit_guarded("mov.pred " + ((uniform ? "%up" : "%p") + std::to_string(operand.index)) + ", " + value);
}
void Lifter::write_predicate(const Operand& operand, bool value) {
    write_predicate(operand, std::string(value ? "%ptrue" : "%pfalse"));
}

// --- writing ---

void Lifter::write(const Operand& operand, Value value) {
    write_index(index_of(operand), std::move(value));
}

void Lifter::write_index(unsigned index, Value value) {
    if (index == zero_register) return;
    if (index >= register_count) refuse_here("a register out of range");
    pairs_.reset(index / 2);
    pairs_.reset(window_high_bits + index);
    Register& known = registers_[index];
    known = Register{};
    if (value.is_window_high) { // it has no value: it is known by its place only
        if (current_->guard != true_predicate || current_->guard_negated) refuse_here("a condition");
        known.is_window_high = true;
        known.number = next_number_++;
        pairs_.set(window_high_bits + index);
        return;
    }
    emit_guarded("mov.b32 " + register_name(index) + ", " + value.text);
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
        const std::string name = (even >= uniform_base ? "%ud" : "%d") + std::to_string(even % uniform_base);
        const int wide = low.wide, own = name_wide(name);
        if (wide != own) {
            emit("mov.b64 " + name + ", " + wide_text(wide));
            for (unsigned i = 0; i < register_count; ++i)
                if (registers_[i].wide == own) registers_[i].wide = -1;
            for (Carry& carry : carries_)
                for (Value* part : {&carry.a, &carry.b, &carry.c})
                    if (part->wide == own) part->wide = -1;
        }
        pairs_.set(even / 2);
    }
}

void Lifter::write_pair(const Operand& operand, int wide) {
    const unsigned index = index_of(operand);
    if (index == zero_register) return;
    if (index % 2 != 0 || index + 1 >= register_count) refuse_here("a pair at an odd register");
    const bool guarded = current_->guard != true_predicate || current_->guard_negated;
    if (guarded) {
        const int old = pair_at(index);
        const std::string result = wide_temporary();
        emit("selp.b64 " + result + ", " + wide_text(wide) + ", " + wide_text(old) + ", " +
             as_register(guard_condition()));
        wide = name_wide(result);
    }
    emit("mov.b64 {" + register_name(index) + ", " + register_name(index + 1) + "}, " + wide_text(wide));
    const std::string name = (index >= uniform_base ? "%ud" : "%d") + std::to_string(index % uniform_base);
    const int own = name_wide(name);
    if (own != wide) {
        emit("mov.b64 " + name + ", " + wide_text(wide));
        for (unsigned i = 0; i < register_count; ++i)
            if (registers_[i].wide == own) registers_[i].wide = -1;
        for (Carry& carry : carries_)
            for (Value* part : {&carry.a, &carry.b, &carry.c})
                if (part->wide == own) part->wide = -1;
    }
    for (unsigned half = 0; half < 2; ++half) {
        Register& known = registers_[index + half];
        known = Register{};
        known.wide = wide;
        known.is_high = half == 1;
        known.number = next_number_++;
        if (const auto bits = wide_constants_.find(wide); bits != wide_constants_.end())
            known.constant = std::uint32_t(bits->second >> 32 * half);
        pairs_.reset(window_high_bits + index + half);
    }
    pairs_.set(index / 2);
}

// --- blocks ---

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

std::string Lifter::label(unsigned block) const {
    return "L" + std::to_string(blocks_[block].context) + "_" + hexadecimal(blocks_[block].begin).substr(2);
}

void Lifter::begin_block(const EntryState& pairs) {
    registers_ = {};
    carries_ = {};
    parameter_pairs_.clear();
    variable_pairs_.clear();
    sine_arguments_.clear();
    lone_masks_.clear();
    lone_lanes_.clear();
    collective_mask_ = pairs[active_mask_bit] ? "%active_mask" : "";
    pairs_ = pairs;
    for (unsigned index = 0; index < register_count; ++index)
        registers_[index].is_window_high = pairs[window_high_bits + index];
    for (unsigned pair = 0; pair < register_count / 2; ++pair) {
        if (!pairs[pair]) continue;
        const unsigned index = 2 * pair;
        const int wide = name_wide((index >= uniform_base ? "%ud" : "%d") + std::to_string(index % uniform_base));
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
    for (std::uint32_t at = block.begin; at < block.end; at += instruction_size) {
        const Instruction& inst = code_[at / instruction_size];
        current_ = &inst;
        if (inst.guard == true_predicate && inst.guard_negated) continue; // never
        try {
            keep_guard(inst);
            if (std::binary_search(relocated_.begin(), relocated_.end(), at))
                move_address(inst);
            else
                rule(inst);
            guard_copy_.clear();
        } catch (const Unliftable& problem) {
            const std::string what = problem.what(), text = describe(inst);
            throw Unliftable(text + " at " + hexadecimal(at) + (what.empty() || what == text ? "" : " (" + what + ")"));
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

std::string Lifter::lift() {
    if (kernel_.has_clusters) throw Unliftable("clusters of blocks");
    discover();
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
    wide_names_.clear();
    wide_ids_.clear();
    wide_constants_.clear();
    text_.clear();
    std::vector<unsigned> order(blocks_.size());
    for (unsigned id = 0; id < order.size(); ++id) order[id] = id;
    std::sort(order.begin(), order.end(), [&](unsigned a, unsigned b) {
        return std::pair(blocks_[a].context, blocks_[a].begin) < std::pair(blocks_[b].context, blocks_[b].begin);
    });
    for (std::size_t i = 0; i < order.size(); ++i) {
        const unsigned id = order[i];
        text_ += label(id) + ":\n";
        begin_block(entries[id]);
        lift_block(id);
        if (blocks_[id].falls_through && (i + 1 == order.size() || order[i + 1] != blocks_[id].successors.back()))
            emit("bra " + label(blocks_[id].successors.back()));
    }
    std::string head;
    head +=
        "\t.reg .b32 %r<256>, %u<64>;\n\t.reg .b64 %d<256>, %ud<64>;\n\t.reg .pred %p<7>, %up<7>, %ptrue, %pfalse;\n";
    head += "\t.reg .b32 %t<" + std::to_string(temporaries_ + 1) + ">;\n";
    head += "\t.reg .b64 %q<" + std::to_string(wide_temporaries_ + 1) + ">;\n";
    head += "\t.reg .pred %c<" + std::to_string(predicate_temporaries_ + 1) + ">;\n";
    head += "\t.reg .b16 %h<" + std::to_string(halves_ + 1) + ">;\n";
    head +=
        "\t.reg .b64 %shared_window, %local_window, %local_base;\n\t.reg .b32 %shared_base, %barrier_result, %active_mask;\n";
    head += "\t.reg .pred %barrier_predicate;\n";
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
    head += "\tmov.u32 %shared_base, " + shared + ";\n\tcvta.shared.u64 %shared_window, " + shared + ";\n";
    if (kernel_.stack_size > 0) {
        head += "\t.local .align 16 .b8 sass_stack[" + std::to_string(kernel_.stack_size) + "];\n";
        head += "\tmov.u64 %local_base, sass_stack;\n\tcvta.local.u64 %local_window, sass_stack;\n";
    }
    return head + text_;
}

} // namespace ptarmigan::sass
