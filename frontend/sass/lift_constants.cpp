// SPDX-License-Identifier: Apache-2.0
// Constant banks: the launch's numbers and the parameters (0), the module's constants (2 and 3), addresses (4).
#include "frontend/sass/lifter.h"

#include <algorithm>

namespace ptarmigan::sass {

namespace {

constexpr int bank_size = 0x10000;

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

Value Lifter::special_word(const std::string& name) {
    Value value = value_of(temporary());
    emit("mov.u32 " + value.text + ", " + name);
    return value;
}

Value Lifter::constant_word(unsigned bank, std::int64_t offset) {
    if (offset % 4 != 0) refuse_here("a constant that is not aligned");
    std::optional<Value> word;
    switch (bank) {
    case 0: word = offset < std::int64_t(kernel_.parameter_base) ? launch_word(offset) : parameter_word(offset); break;
    case 2:
        if (const auto bits = constant_bytes(bank, offset)) word = constant(*bits);
        break;
    case 3:
        if (!has_section(constants_section)) break;
        word = value_of(temporary());
        emit("ld.const.b32 " + word->text + ", [sass_constants+" + std::to_string(offset) + "]");
        break;
    case 4: word = address_word(offset); break;
    default: break;
    }
    if (!word) refuse_here("c[" + hexadecimal(bank) + "][" + hexadecimal(std::uint64_t(offset)) + "]");
    return *word;
}

/// In front of the parameters.
std::optional<Value> Lifter::launch_word(std::int64_t offset) {
    if (cubin_.architecture >= 100) offset = place_on_hopper(offset);
    switch (offset) {
    case 0x0: return special_word("%ntid.x");
    case 0x4: return special_word("%ntid.y");
    case 0x8: return special_word("%ntid.z");
    case 0xc: return special_word("%nctaid.x");
    case 0x10: return special_word("%nctaid.y");
    case 0x14: return special_word("%nctaid.z");
    case 0x18:
    case 0x1c:
        if (cubin_.architecture >= 90) break;
        return offset == 0x18 ? low_half(name_wide("%shared_window")) : high_half(name_wide("%shared_window"));
    case 0x20: return low_half(name_wide("%local_window"));
    case 0x24: return high_half(name_wide("%local_window"));
    case 0x28: return stack_ == Stack::growing ? constant(growing_stack_end) : constant(kernel_.stack_size);
    case 0x2c: return special_word("%dynamic_smem_size");
    case 0x10c: return special_word("%nsmid");
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
        const Value place = special_word(offset == reserved ? "%reserved_smem_offset_end" : "%reserved_smem_offset_1");
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
    if (cubin_.architecture >= 90)
        if (const auto word = cluster_word(offset)) return word;
    if (cubin_.architecture < 90 && (offset == 0x40 || offset == 0x44)) return parameter_window(true, offset == 0x44);
    const std::int64_t environment = cubin_.architecture >= 90 ? 0x40 : 0x88;
    if (offset >= environment && offset < environment + 12)
        return special_word("%envreg" + std::to_string((offset - environment) / 4));
    const std::int64_t graph = cubin_.architecture >= 90 ? 0x190 : 0x130;
    if (offset == graph || offset == graph + 4) {
        const std::string pair = wide_temporary();
        emit("mov.u64 " + pair + ", %current_graph_exec");
        return offset == graph ? low_half(name_wide(pair)) : high_half(name_wide(pair));
    }
    // The descriptor of all global memory, which loads and stores name.
    const std::int64_t descriptor = cubin_.architecture >= 90 ? 0x208 : 0x118;
    if (offset == descriptor || offset == descriptor + 4) return constant(0);
    return std::nullopt;
}

/// From sm_90 on: whether there are clusters, blocks of one in each direction, what divides by that, clusters, blocks.
std::optional<Value> Lifter::cluster_word(std::int64_t offset) {
    constexpr const char* directions[] = {"x", "y", "z"};
    const std::string_view direction = offset >= 0x144 && offset < 0x168 ? directions[(offset - 0x144) / 4 % 3] : "";
    if (offset == 0x140) {
        const std::string is_explicit = predicate_temporary(), result = temporary();
        emit("mov.pred " + is_explicit + ", %is_explicit_cluster");
        emit("selp.b32 " + result + ", 1, 0, " + is_explicit);
        return value_of(result);
    }
    if (offset >= 0x144 && offset < 0x150) return special_word("%cluster_nctaid." + std::string(direction));
    if (offset >= 0x150 && offset < 0x15c) {
        const Value count = special_word("%cluster_nctaid." + std::string(direction));
        const std::string single = temporary(), result = temporary();
        emit("cvt.rn.f32.u32 " + single + ", " + count.text);
        emit("rcp.rp.f32 " + result + ", " + single);
        return value_of(result);
    }
    if (offset >= 0x15c && offset < 0x168) return special_word("%nclusterid." + std::string(direction));
    if (offset == 0x188) return special_word("%cluster_nctarank");
    if (offset == 0x18c) return constant(0); // no: fence.proxy.alias is the system's, not the device's
    const bool of_bank = offset == 0xc0 || offset == 0xc4;
    if (of_bank || offset == 0x198 || offset == 0x19c) return parameter_window(of_bank, offset % 8 != 0);
    return std::nullopt;
}

std::optional<Value> Lifter::parameter_word(std::int64_t offset) {
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
    return std::nullopt;
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

/// A half of the address of bank 0, or of the parameters in it.
Value Lifter::parameter_window(bool of_bank, bool is_high) {
    if (kernel_.parameters.empty()) refuse_here("the address of parameters that are not there");
    reads_parameter_window_ = true;
    // Where parameters lie was said before the code was lifted.
    if (!aligns_maps_ && std::any_of(kernel_.parameters.begin(), kernel_.parameters.end(),
                                     [&](const KernelParameter& parameter) { return has_map(parameter); }))
        refuse_here("the address of parameters");
    std::string place = "%parameter_window";
    if (of_bank) {
        place = wide_temporary();
        emit("sub.s64 " + place + ", %parameter_window, " + std::to_string(kernel_.parameter_base));
    }
    const int wide = name_wide(place);
    return is_high ? high_half(wide) : low_half(wide);
}

/// Of variables and functions.
std::optional<Value> Lifter::address_word(std::int64_t offset) {
    const CubinSection* section = cubin_.find_section(".nv.constant4");
    const std::int64_t even = offset & ~std::int64_t(7);
    if (section == nullptr) return std::nullopt;
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
    return std::nullopt;
}

void Lifter::load_constant(const Instruction& inst) {
    Operand place = inst.operands[1];
    const Size size = size_of(inst);
    unsigned by = place.index; // the register that is added
    const bool is_uniform = inst.form->id == FormId::uldc_indexed || inst.form->id == FormId::ldcu;
    if (is_uniform && place.uniform != zero_uniform) by = uniform_base + place.uniform;
    if (by != zero_register)
        if (const Value index = read_index(by); index.constant) {
            place.value += std::int32_t(*index.constant);
            by = zero_register;
        }
    const bool wraps = place.value < 0; // the sum counts in the bank: 0x8000 further on is coded as 0x8000 before
    if (wraps && by == zero_register) place.value += bank_size;
    if (inst.has("IL") || inst.has("IS") || inst.has("ISL") || place.bindless) refuse_here();
    if (by == zero_register && size.bytes >= 4) return load_constant_words(inst, place, size.bytes);
    if (size.bytes > 8) refuse_here();
    if (by == zero_register && place.bank == 0) return load_part_of_word(inst, place, size);
    std::string base;
    if (by != zero_register) {
        base = wide_temporary();
        if (wraps) {
            const std::string sum = temporary(), inside = temporary();
            emit("add.u32 " + sum + ", " + read_index(by).text + ", " + std::to_string(place.value));
            emit("and.b32 " + inside + ", " + sum + ", " + std::to_string(bank_size - 1));
            emit("cvt.u64.u32 " + base + ", " + inside);
            place.value = 0;
        } else {
            emit("cvt.s64.s32 " + base + ", " + read_index(by).text);
        }
    }
    if (place.bank == 3 || place.bank == 2)
        load_from_space(inst, "ld.const", place_in_section(place, base), size);
    else if (place.bank == 0 && !kernel_.parameters.empty())
        load_from_space(inst, "ld.param", place_in_parameters(place, base), size);
    else
        refuse_here("a constant by a register");
}

void Lifter::load_constant_words(const Instruction& inst, const Operand& place, unsigned bytes) {
    if (bytes >= 8) {
        Operand target = inst.operands[0];
        const unsigned count = bytes / 8;
        if (count > 1 && target.index % 4 != 0) refuse_here(); // nothing is written before all is read
        std::vector<int> pairs;
        for (unsigned i = 0; i < count; ++i)
            pairs.push_back(join(constant_word(place.bank, place.value + 8 * i),
                                 constant_word(place.bank, place.value + 8 * i + 4)));
        for (const int pair : pairs) {
            write_pair(target, pair);
            target.index = std::uint8_t(target.index + 2);
        }
    } else {
        write(inst.operands[0], constant_word(place.bank, place.value));
    }
}

/// Of the launch's numbers or of a parameter: less than a word.
void Lifter::load_part_of_word(const Instruction& inst, const Operand& place, const Size& size) {
    if (place.value < std::int64_t(kernel_.parameter_base)) {
        const std::int64_t first = place.value % 4;
        if (place.value < 0 || first + size.bytes > 4) refuse_here();
        const Value word = constant_word(0, place.value - first);
        const std::string result = temporary();
        emit(std::string(size.narrow[1] == 's' ? "bfe.s32 " : "bfe.u32 ") + result + ", " + in_register(word) + ", " +
             std::to_string(8 * first) + ", " + std::to_string(8 * size.bytes));
        return write(inst.operands[0], value_of(result));
    }
    std::string where;
    for (const KernelParameter& parameter : kernel_.parameters) {
        const std::int64_t inside = place.value - kernel_.parameter_base - parameter.offset;
        if (inside >= 0 && inside + size.bytes <= parameter.size)
            where = "param_" + std::to_string(parameter.ordinal) + plus(inside);
    }
    if (where.empty()) refuse_here();
    const std::string result = temporary();
    emit(std::string("ld.param") + size.narrow + " " + result + ", [" + where + "]");
    write(inst.operands[0], value_of(result));
}

void Lifter::load_from_space(const Instruction& inst, const std::string& opcode, const std::string& where,
                             const Size& size) {
    if (size.bytes == 8) {
        const std::string result = wide_temporary();
        emit_guarded(opcode + ".b64 " + result + ", " + where);
        write_pair(inst.operands[0], name_wide(result));
    } else {
        const std::string result = temporary();
        emit_guarded(opcode + (size.bytes == 4 ? ".b32" : size.narrow) + " " + result + ", " + where);
        write(inst.operands[0], value_of(result));
    }
}

/// In one of the module's sections of constants, `base` (a 64-bit register, or none) further on.
std::string Lifter::place_in_section(const Operand& place, const std::string& base) {
    if (place.bank == 3 && !has_section(constants_section)) refuse_here("constants that are not there");
    const std::string variable = wide_temporary();
    emit("mov.u64 " + variable + ", " + (place.bank == 2 ? table_place() : std::string("sass_constants")));
    std::string sum = variable;
    if (!base.empty()) {
        sum = wide_temporary();
        emit("add.s64 " + sum + ", " + variable + ", " + base);
    }
    return "[" + sum + plus(place.value) + "]";
}

/// An array among the parameters, from the one on that the constant part of the address lies in or behind. At -O0 the
/// register is the whole address, so that any parameter may be meant: one that lies elsewhere than in the bank is told
/// by the address that comes out.
std::string Lifter::place_in_parameters(const Operand& place, std::string base) {
    const std::vector<PlacedParameter> placed = place_parameters();
    std::size_t array = 0;
    std::int64_t shift = 0; // from a place in the bank to that of the declared list
    bool is_shifted = false;
    for (std::size_t i = 0; i < placed.size(); ++i) {
        const std::int64_t from = kernel_.parameters[i].offset;
        if (place.value >= std::int64_t(kernel_.parameter_base) + from) array = i;
        is_shifted = is_shifted || placed[i].offset != from;
    }
    const std::string variable = wide_temporary();
    std::string sum = wide_temporary();
    std::int64_t behind = place.value - std::int64_t(kernel_.parameter_base) - kernel_.parameters[array].offset;
    if (is_shifted) {
        array = 0;
        std::string inside = wide_temporary(), in_bank = inside;
        emit("add.s64 " + inside + ", " + base + ", " +
             std::to_string(place.value - std::int64_t(kernel_.parameter_base)));
        for (std::size_t i = 0; i < placed.size(); ++i) {
            const std::int64_t from = kernel_.parameters[i].offset, here = std::int64_t(placed[i].offset) - from;
            if (here == shift) continue;
            const std::string is_behind = predicate_temporary(), moved = wide_temporary(), chosen = wide_temporary();
            emit("setp.ge.s64 " + is_behind + ", " + in_bank + ", " + std::to_string(from));
            emit("add.s64 " + moved + ", " + in_bank + ", " + std::to_string(here));
            emit("selp.b64 " + chosen + ", " + moved + ", " + inside + ", " + is_behind);
            inside = chosen;
            shift = here;
        }
        base = inside;
        behind = 0;
    }
    emit("mov.u64 " + variable + ", param_" + std::to_string(kernel_.parameters[array].ordinal));
    emit("add.s64 " + sum + ", " + variable + ", " + base);
    return "[" + sum + plus(behind) + "]";
}

} // namespace ptarmigan::sass
