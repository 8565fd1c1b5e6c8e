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

namespace {

/// Where sm_90 has what stands at `offset` among the launch's words on sm_100 and later; -1 if nothing is known.
std::int64_t place_on_hopper(std::int64_t offset) {
    struct Words {
        std::int64_t here, there, size;
    };
    // Those up to 0x2cf are read at -0xa0 * SR_CgaSize behind these.
    static constexpr Words words[] = {
        {0x120, 0xd0, 8},   // the window of constants
        {0x16c, 0x114, 4},  // shared memory that the system takes
        {0x250, 0x40, 12},  // %envreg
        {0x278, 0x68, 8},   // %reserved_smem_offset
        {0x2a0, 0x144, 12}, // %cluster_nctaid
        {0x2ac, 0x2c, 4},   // %dynamic_smem_size
        {0x2b0, 0x150, 12}, // one by %cluster_nctaid
        {0x2c0, 0x15c, 12}, // %nclusterid
        {0x2cc, 0x188, 4},  // %cluster_nctarank
        {0x2d0, 0x10c, 4},  // %nsmid
        {0x2d8, 0x18c, 4},  // whether a fence between aliases is the system's
        {0x2f8, 0x20, 8},   // the window of local memory
        {0x348, 0x198, 8},  // the address of the parameters
        {0x358, 0x208, 8},  // the descriptor of global memory
        {0x360, 0x0, 12},   // %ntid
        {0x36c, 0x140, 4},  // %is_explicit_cluster
        {0x370, 0xc, 12},   // %nctaid
        {0x37c, 0x28, 4},   // the stack's end
    };
    for (const Words& word : words)
        if (offset >= word.here && offset < word.here + word.size) return word.there + (offset - word.here);
    return -1;
}

} // namespace

Value Lifter::constant_word(unsigned bank, std::int64_t offset) {
    if (offset % 4 != 0) refuse_here("a constant that is not aligned");
    const std::string place = "c[" + hexadecimal(bank) + "][" + hexadecimal(std::uint64_t(offset)) + "]";
    if (bank == 0 && offset < std::int64_t(kernel_.parameter_base)) {
        if (cubin_.architecture >= 100) offset = place_on_hopper(offset);
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
        case 0x28: return stack_ == Stack::growing ? constant(growing_stack_end) : constant(kernel_.stack_size);
        case 0x2c: return special("%dynamic_smem_size");
        case 0x10c: return special("%nsmid");
        case 0x128: // not 0: a fence for the device is enough where the source has one for the system
            if (cubin_.architecture >= 90) break;
            return constant(0);
        case 0x114: return constant(0); // shared memory that the system takes: none
        default: break;
        }
        // Where the shared memory ends that the system uses, and where in it tiles of several warps
        // (cooperative_groups) have theirs.
        const std::int64_t reserved = cubin_.architecture >= 90 ? 0x68 : 0x120;
        if (offset == reserved || offset == reserved + 4) {
            const Value place = special(offset == reserved ? "%reserved_smem_offset_end" : "%reserved_smem_offset_1");
            if (!has_ranks_) emit("sub.s32 " + place.text + ", " + place.text + ", %shared_base");
            if (cubin_.architecture >= 90)
                emit("add.s32 " + place.text + ", " + place.text + ", " + std::to_string(system_shared));
            return place;
        }
        const std::int64_t constants = cubin_.architecture >= 90 ? 0xd0 : 0x50;
        if (offset == constants || offset == constants + 4) {
            // An address is compared with the window's begin and end, which are one without constants.
            if (!has_section(constants_section)) return constant(0);
            const int window = name_wide(std::string(constant_window));
            return offset == constants ? low_half(window) : high_half(window);
        }
        if (cubin_.architecture >= 90) {
            // Of clusters: whether there are, blocks of one in each direction, what divides by that, clusters, blocks.
            constexpr const char* directions[] = {"x", "y", "z"};
            const std::string_view direction =
                offset >= 0x144 && offset < 0x168 ? directions[(offset - 0x144) / 4 % 3] : "";
            if (offset == 0x140) {
                const std::string is_explicit = predicate_temporary(), result = temporary();
                emit("mov.pred " + is_explicit + ", %is_explicit_cluster");
                emit("selp.b32 " + result + ", 1, 0, " + is_explicit);
                return value_of(result);
            }
            if (offset >= 0x144 && offset < 0x150)
                return special(("%cluster_nctaid." + std::string(direction)).c_str());
            if (offset >= 0x150 && offset < 0x15c) {
                const Value count = special(("%cluster_nctaid." + std::string(direction)).c_str());
                const std::string single = temporary(), result = temporary();
                emit("cvt.rn.f32.u32 " + single + ", " + count.text);
                emit("rcp.rp.f32 " + result + ", " + single);
                return value_of(result);
            }
            if (offset >= 0x15c && offset < 0x168) return special(("%nclusterid." + std::string(direction)).c_str());
            if (offset == 0x188) return special("%cluster_nctarank");
            if (offset == 0x18c) return constant(0); // no: fence.proxy.alias is the system's, not the device's
            const bool of_bank = offset == 0xc0 || offset == 0xc4;
            if (of_bank || offset == 0x198 || offset == 0x19c) return parameter_window(of_bank, offset % 8 != 0);
        }
        const std::int64_t environment = cubin_.architecture >= 90 ? 0x40 : 0x88;
        if (offset >= environment && offset < environment + 12)
            return special(("%envreg" + std::to_string((offset - environment) / 4)).c_str());
        const std::int64_t graph = cubin_.architecture >= 90 ? 0x190 : 0x130;
        if (offset == graph || offset == graph + 4) {
            const std::string pair = wide_temporary();
            emit("mov.u64 " + pair + ", %current_graph_exec");
            return offset == graph ? low_half(name_wide(pair)) : high_half(name_wide(pair));
        }
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
        }
        // Small parameters side by side, or the end of one, with padding between them: a number of bytes of each.
        std::optional<Value> joined;
        for (const KernelParameter& parameter : kernel_.parameters) {
            const std::int64_t begin = std::int64_t(kernel_.parameter_base) + parameter.offset - offset;
            const std::int64_t first = std::max<std::int64_t>(begin, 0),
                               last = std::min<std::int64_t>(begin + parameter.size, 4);
            for (std::int64_t byte = first; byte < last;) {
                const bool two = byte % 2 == 0 && (byte - begin) % 2 == 0 && byte + 2 <= last;
                Value part = value_of(temporary());
                emit((two ? "ld.param.u16 " : "ld.param.u8 ") + part.text + ", [param_" +
                     std::to_string(parameter.ordinal) + plus(byte - begin) + "]");
                if (byte > 0) emit("shl.b32 " + part.text + ", " + part.text + ", " + std::to_string(8 * byte));
                if (joined) emit("or.b32 " + part.text + ", " + part.text + ", " + joined->text);
                joined = part;
                byte += two ? 2 : 1;
            }
        }
        if (joined) return *joined;
        // Padding between parameters: what ptxas made of a read behind an array's end, or of an int as two words.
        const auto is_behind = [&](const KernelParameter& parameter) {
            return offset < std::int64_t(kernel_.parameter_base) + parameter.offset;
        };
        if (std::any_of(kernel_.parameters.begin(), kernel_.parameters.end(), is_behind)) return constant(0);
        refuse_here(place);
    }
    if (bank == 2)
        if (const auto bits = constant_bytes(bank, offset)) return constant(*bits);
    if (bank == 3 && has_section(constants_section)) {
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
                if (const auto address = code_address(symbol, relocation.addend))
                    return constant(offset == even ? std::uint32_t(*address) : std::uint32_t(*address >> 32));
                const std::string pair = wide_temporary();
                emit("mov.u64 " + pair + ", " + variable_place(symbol, relocation.addend));
                const int wide = name_wide(pair);
                return offset == even ? low_half(wide) : high_half(wide);
            }
    }
    refuse_here(place);
}

/// A half of the address of bank 0, or of the parameters in it.
Value Lifter::parameter_window(bool of_bank, bool is_high) {
    if (kernel_.parameters.empty()) refuse_here("the address of parameters that are not there");
    reads_parameter_window_ = true;
    // Where parameters lie was said before the code was lifted.
    if (!aligns_maps_ && std::any_of(kernel_.parameters.begin(), kernel_.parameters.end(),
                                     [&](const KernelParameter& parameter) { return has_map(parameter); }))
        refuse_here("the address of parameters");
    // With other distances between the parameters only who knows what is read can tell where that lies: a tensor's map.
    if (has_shifted_parameters())
        for (const Instruction& inst : code_)
            if (inst.form != nullptr && inst.form->id == FormId::ld) refuse_here("the address of parameters");
    std::string place = "%parameter_window";
    if (of_bank) {
        place = wide_temporary();
        emit("sub.s64 " + place + ", %parameter_window, " + std::to_string(kernel_.parameter_base));
    }
    const int wide = name_wide(place);
    return is_high ? high_half(wide) : low_half(wide);
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
