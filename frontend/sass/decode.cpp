// SPDX-License-Identifier: Apache-2.0
// From 128 bits to an instruction, by its row.
#include "frontend/sass/opcode_table.h"

namespace ptarmigan::sass {
namespace {

using Kind = Operand::Kind;

ImmediateType immediate_type(char letter) {
    switch (letter) {
    case 's': return ImmediateType::signed_int;
    case 'f':
    case 'q': return ImmediateType::f32;
    case 'e': return ImmediateType::f64_high;
    case 'h': return ImmediateType::f16x2;
    default: return ImmediateType::bits;
    }
}

/// Scheduling: how long to wait, for which scoreboards, which operands stay near. No meaning.
constexpr Code scheduling{0, ~std::uint64_t(0) << (105 - 64)};
/// Opcode and guard.
constexpr Code always_read{0xffff, 0};

/// An instruction's bits, and which of them were looked at.
class Bits {
public:
    explicit Bits(Code code)
        : code_(code), read_{always_read.low | scheduling.low, always_read.high | scheduling.high} {}

    std::uint64_t bits(unsigned first, unsigned count) {
        for (unsigned i = first; i < first + count; ++i)
            (i < 64 ? read_.low : read_.high) |= std::uint64_t(1) << i % 64;
        return code_.bits(first, count);
    }
    std::int64_t signed_bits(unsigned first, unsigned count) {
        static_cast<void>(bits(first, count));
        return code_.signed_bits(first, count);
    }
    bool bit(unsigned index) { return bits(index, 1) != 0; }
    std::uint64_t of(const BitField& field) {
        for (const BitField::Part& part : field.parts) static_cast<void>(bits(part.first, part.count));
        return field.of(code_);
    }
    Code unread() const { return {code_.low & ~read_.low, code_.high & ~read_.high}; }

private:
    const Code code_;
    Code read_;
};

class Decoder {
public:
    explicit Decoder(Instruction& instruction)
        : inst_(instruction), code_(instruction.code), form_(*instruction.form) {}

    bool decode() {
        bool known = true;
        for (const ModifierSpec& spec : form_.modifiers) {
            if (!spec.is_in(inst_.architecture)) continue;
            const std::string& name = spec.names[code_.of(spec.field)];
            if (name == "?") known = false;
            if (name.empty()) continue;
            if (inst_.modifier_count == Instruction::max_modifiers) return false;
            inst_.modifiers[inst_.modifier_count++] = name;
        }
        for (const OperandSpec& spec : form_.operands) {
            Operand& operand = inst_.operands[inst_.operand_count++];
            if (!decode(spec, operand)) known = false;
        }
        if ((is_uniform_layout() && !code_.bit(uses_uniform)) || lacks_flag_) known = false;
        inst_.unread = code_.unread();
        return known && inst_.unread.low == 0 && inst_.unread.high == 0;
    }

private:
    /// Set where a uniform register stands among the sources of an instruction.
    static constexpr unsigned uses_uniform = 91;
    enum class Slot { a, low, high }; ///< bits 24, 32 and 64

    bool decode(const OperandSpec& spec, Operand& operand) {
        switch (spec.kind) {
        case 'd':
            reg(operand, spec, unsigned(code_.of(spec.field)));
            if (spec.may_negate)
                modifiers(spec, operand, spec.field.parts[0].first == 32 ? 63 : 75,
                          spec.field.parts[0].first == 32 ? 62 : 74, 0);
            if (spec.field.parts[0].first == 32) operand.reuse = code_.bit(123);
            return true;
        case 'D':
            operand.kind = Kind::uniform;
            return uniform(operand.index, spec.field.parts[0].first) &
                   (spec.field.parts[0].first == 16 || code_.bit(uses_uniform));
        case 'a': slot_register(spec, operand, Slot::a); return true;
        case 'b':
        case 'c': return by_layout(spec, operand);
        case 'P':
        case 'U':
        case 'V':
            operand.kind =
                spec.kind == 'P' || (spec.kind == 'V' && !code_.bit(67)) ? Kind::predicate : Kind::uniform_predicate;
            operand.index = std::uint8_t(code_.of(spec.field));
            operand.negated = spec.may_negate && code_.bit(spec.field.parts[0].first + 3u);
            return true;
        case 'Z':
            operand.kind = Kind::predicate;
            operand.index = std::uint8_t(true_predicate ^ code_.of(spec.field));
            operand.negated = spec.may_negate && code_.bit(spec.field.parts[0].first + 3u);
            return true;
        case 'Y':
            operand.kind = Kind::uniform_predicate;
            operand.index = std::uint8_t(true_predicate ^ code_.of(spec.field));
            operand.negated = code_.bit(spec.field.parts[0].first + 3u);
            return true;
        case 'h':
            if (!code_.bit(76)) return true;
            [[fallthrough]];
        case 'm':
        case 'G':
            operand.kind = Kind::uniform;
            return uniform(operand.index, spec.field.parts[0].first) & code_.bit(uses_uniform);
        case 'L':
            operand.kind = Kind::immediate;
            operand.value = std::int64_t(code_.of(spec.field));
            return true;
        case 'X':
            operand.kind = Kind::number;
            operand.value = std::int64_t(code_.of(spec.field));
            return operand.value == 0 || operand.value == no_group;
        case '#':
            operand.kind = Kind::immediate;
            operand.value = spec.is_signed ? code_.signed_bits(spec.field.parts[0].first, spec.field.parts[0].count)
                                           : std::int64_t(code_.of(spec.field));
            return true;
        case 'g':
        case 'l':
        case 's':
        case 't': address(spec.kind, operand); return true;
        case 'u':
            operand.kind = Kind::address;
            operand.index = std::uint8_t(code_.bits(24, 8));
            return true;
        case 'y':
        case 'z': return barrier_address(spec.kind, operand);
        case 'C': constant(operand); return true;
        case 'S':
            operand.kind = Kind::special;
            operand.value = std::int64_t(code_.bits(72, 8));
            return true;
        case 'T':
            if (spec.only_with == 'c' && !inst_.has("COLLECTIVE")) return true;
            operand.kind = Kind::target;
            operand.value = inst_.address + 16 + relative();
            return true;
        case 'A': // whole, where relocations put an address
            operand.kind = Kind::target;
            operand.value = relative();
            return true;
        case 'E': // in bytes
            operand.kind = Kind::target;
            operand.value = inst_.address + 16 +
                            (code_.signed_bits(64, 18) * 256 * 65536 * 65536 + std::int64_t(code_.bits(24, 40)));
            return true;
        case 'W':
            if (code_.bits(32, 2) < 2 || inst_.architecture < 80) return true;
            static_cast<void>(code_.bit(uses_uniform));
            operand.kind = Kind::uniform;
            lacks_flag_ |= !uniform(operand.index, 24, 6);
            operand.inverted = code_.bit(30);
            return true;
        case 'J':
            operand.kind = Kind::register_target;
            operand.index = std::uint8_t(code_.bits(24, 8));
            if (form_.id == FormId::brxu && (!code_.bit(uses_uniform) || !uniform(operand.index, 24))) return false;
            operand.value = relative() + (inst_.has("ABS") ? 0 : inst_.address + 16);
            return true;
        case 'B':
        case 'Q':
        case '{':
            operand.kind = Kind::number;
            operand.value = std::int64_t(code_.of(spec.field));
            return true;
        case 'N':
        case 'R': operand.kind = Kind::number; return true;
        case 'k': // of all lines: no address
            operand.index = std::uint8_t(code_.bits(24, 8));
            if (operand.index == zero_register) return true;
            operand.kind = Kind::address;
            operand.value = code_.signed_bits(32, 32);
            return true;
        }
        return false;
    }

    bool is_blackwell() const { return inst_.architecture >= 100; }

    /// The number of a uniform register from bit `first` on, which has 8 bits from sm_100 on and `count` before. False
    /// where there is no such register.
    bool uniform(std::uint8_t& index, unsigned first, unsigned count = 8) {
        constexpr unsigned zero_before = 63;
        auto number = unsigned(code_.bits(first, is_blackwell() ? 8 : count));
        if (!is_blackwell() && number == zero_before) number = zero_uniform;
        index = std::uint8_t(number);
        return number == zero_uniform || number < (is_blackwell() ? uniform_count : zero_before);
    }

    /// A distance from the next instruction, in units of 4 bytes: bits 34 to 81, and on sm_90 below them 16 to 23.
    std::int64_t relative() {
        if (form_.id == FormId::bssy && (is_blackwell() || inst_.architecture < 80))
            return code_.signed_bits(34, 30) * 4;
        const std::int64_t high = code_.signed_bits(34, 48);
        if (inst_.architecture < 90 || form_.id == FormId::bssy) return high * 4;
        return (high * 256 + std::int64_t(code_.bits(16, 8))) * 4;
    }

    static void reg(Operand& operand, const OperandSpec&, unsigned index) {
        operand.kind = Kind::reg;
        operand.index = std::uint8_t(index);
    }

    bool is_uniform_layout() const {
        return form_.layout == Layout::uabc || form_.layout == Layout::uab || form_.layout == Layout::uad;
    }

    void modifiers(const OperandSpec& spec, Operand& operand, unsigned negate, unsigned absolute, unsigned swizzle) {
        operand.negated = spec.may_negate && code_.bit(negate);
        operand.inverted = spec.may_invert && code_.bit(negate);
        if (spec.invert_with_x && code_.bit(negate)) (inst_.has("X") ? operand.inverted : operand.negated) = true;
        operand.absolute = spec.may_be_absolute && code_.bit(absolute);
        // F16 among forms of 32 and of 64 bits.
        const bool is_half_of_wide =
            (spec.type == '2' && code_.bits(84, 2) == 1) || (form_.id == FormId::f2f && code_.bits(84, 3) == 1);
        const bool is_half = form_.id == FormId::f2f && code_.bits(84, 3) != 2; // no F32
        if (operand.kind == Kind::reg && (spec.type == 'i' || spec.type == 'q' || is_half_of_wide || is_half))
            operand.part = std::uint8_t(code_.bits(60, 2));
        if (spec.type != 'h' || form_.id == FormId::lea || form_.id == FormId::ulea) return;
        operand.negated = code_.bit(negate);
        operand.absolute = code_.bit(absolute);
        operand.swizzle = std::uint8_t(code_.bits(swizzle, 2));
    }
    void slot_modifiers(const OperandSpec& spec, Operand& operand, Slot slot) {
        const bool halves = spec.type == 'h';
        switch (slot) {
        case Slot::a: modifiers(spec, operand, 72, 73, 74); break;
        case Slot::low: modifiers(spec, operand, 63, 62, 60); break;
        case Slot::high:
            modifiers(spec, operand, halves ? 84 : 75, halves ? 83 : 74, form_.id == FormId::vhmnmx ? 76 : 81);
            break;
        }
    }
    void slot_register(const OperandSpec& spec, Operand& operand, Slot slot) {
        constexpr unsigned first[] = {24, 32, 64};
        const auto index = unsigned(code_.bits(first[unsigned(slot)], 8));
        if (is_uniform_layout()) {
            operand.kind = Kind::uniform;
            lacks_flag_ |= !uniform(operand.index, first[unsigned(slot)]);
        } else {
            reg(operand, spec, index);
            const bool third = spec.kind == 'c' || form_.layout == Layout::ac || form_.layout == Layout::ad;
            operand.reuse = code_.bit(spec.kind == 'a' ? 122 : third ? 124 : 123);
        }
        slot_modifiers(spec, operand, slot);
    }
    void immediate(const OperandSpec& spec, Operand& operand) {
        operand.kind = Kind::immediate;
        operand.type = immediate_type(spec.type);
        operand.value =
            operand.type == ImmediateType::signed_int ? code_.signed_bits(32, 32) : std::int64_t(code_.bits(32, 32));
    }
    void constant(const OperandSpec& spec, Operand& operand) {
        operand.kind = Kind::constant;
        operand.index = zero_register;
        operand.bindless = code_.bit(91);
        if (operand.bindless) lacks_flag_ |= !uniform(operand.uniform, 32, 6);
        operand.bank = std::uint8_t(code_.bits(54, 5));
        operand.value = std::int64_t(code_.bits(38, 16));
        slot_modifiers(spec, operand, Slot::low);
    }
    void slot_uniform(const OperandSpec& spec, Operand& operand) {
        operand.kind = Kind::uniform;
        lacks_flag_ |= !uniform(operand.index, 32, 6) | !code_.bit(uses_uniform);
        slot_modifiers(spec, operand, Slot::low);
    }
    bool by_layout(const OperandSpec& spec, Operand& operand) {
        const bool is_b = spec.kind == 'b';
        const auto number = unsigned(code_.bits(9, 3));
        switch (form_.layout) {
        case Layout::ac:
        case Layout::ad:
        case Layout::ab:
        case Layout::uab:
        case Layout::uad:
            switch (number) {
            case 1:
                slot_register(spec, operand,
                              form_.layout == Layout::ad || form_.layout == Layout::uad ? Slot::high : Slot::low);
                return true;
            case 2:
            case 4: immediate(spec, operand); return true;
            case 3:
            case 5: constant(spec, operand); return true;
            default: slot_uniform(spec, operand); return true;
            }
        case Layout::aw:
            switch (number) {
            case 2: // with a sign of its own
                operand.kind = Kind::immediate;
                operand.type = ImmediateType::signed_int;
                operand.value = code_.signed_bits(32, 33);
                return true;
            case 3: slot_register(spec, operand, Slot::low); return true;
            default: slot_uniform(spec, operand); return true;
            }
        case Layout::abc:
        case Layout::uabc: {
            const bool c_is_low = number == 2 || number == 3 || number == 7;
            if (is_b == c_is_low) {
                slot_register(spec, operand, Slot::high);
                return true;
            }
            switch (number) {
            case 1: slot_register(spec, operand, Slot::low); return true;
            case 2:
            case 4: immediate(spec, operand); return true;
            case 3:
            case 5: constant(spec, operand); return true;
            default: slot_uniform(spec, operand); return true;
            }
        }
        default: return false;
        }
    }
    /// Of LDC and ULDC.
    void constant(Operand& operand) {
        operand.kind = Kind::constant;
        if (form_.id == FormId::uldc_indexed) {
            lacks_flag_ |= !code_.bit(uses_uniform);
            operand.index = zero_register;
            lacks_flag_ |= !uniform(operand.uniform, 24, 6);
            operand.bank = std::uint8_t(code_.bits(54, 5));
            operand.value = code_.signed_bits(38, 16);
            return;
        }
        if (form_.id == FormId::ldcu) {
            lacks_flag_ |= !code_.bit(uses_uniform) | !uniform(operand.uniform, 24);
            operand.index = zero_register;
            operand.bank = std::uint8_t(code_.bits(54, 5));
            operand.value = code_.signed_bits(37, 17);
            return;
        }
        operand.index = form_.id == FormId::uldc ? zero_register : std::uint8_t(code_.bits(24, 8));
        operand.bindless = code_.bit(91);
        if (operand.bindless) lacks_flag_ |= !uniform(operand.uniform, form_.id == FormId::uldc ? 24 : 32, 6);
        operand.bank = std::uint8_t(code_.bits(54, 5));
        operand.value = form_.id == FormId::uldc ? std::int64_t(code_.bits(38, 16)) : code_.signed_bits(38, 16);
    }
    void address(char space, Operand& operand) {
        operand.kind = Kind::address;
        operand.index = std::uint8_t(code_.bits(24, 8));
        if (space != 'g') operand.value = code_.signed_bits(40, 24);
        const bool second_register =
            form_.code == 0x38c || form_.code == 0x38d || form_.code == 0xf8c || form_.code == 0x98c;
        if (form_.id == FormId::ldgsts || form_.id == FormId::ldgsts_uniform) { // both in one instruction
            const bool adds_uniform = form_.id == FormId::ldgsts_uniform;
            if (space == 't') {
                operand.index = std::uint8_t(code_.bits(16, 8));
                operand.value = code_.signed_bits(44, 20);
                if (!adds_uniform) return;
                lacks_flag_ |= !code_.bit(uses_uniform);
                lacks_flag_ |= !uniform(operand.uniform, 64, 6);
                return;
            }
            operand.value = code_.signed_bits(32, 12);
            lacks_flag_ |= adds_uniform && is_blackwell(); // not seen
            if (adds_uniform) {
                operand.wide = code_.bit(70);
                operand.is_descriptor = code_.bit(76); // sm_90 would name its register, too
                lacks_flag_ |= !operand.wide || (operand.is_descriptor && inst_.architecture >= 90);
                return;
            }
        }
        if (space == 'g') {
            // A uniform register is added, or is a descriptor, which says nothing here.
            const bool is_atomic = form_.rule == "atomic" || form_.rule == "reduction";
            const bool is_load = form_.id == FormId::ld || form_.id == FormId::ldg; // ldg_plain: 24 bits
            const bool is_query = form_.rule == "query_space";
            const bool is_copy = form_.id == FormId::ldgsts, is_reduction = form_.rule == "reduction";
            const bool is_plain_store = form_.id == FormId::st_plain;
            const bool is_async_reduction = form_.id == FormId::redas;
            const bool has_uniform = code_.bit(uses_uniform);
            const bool returns = is_atomic && !is_reduction;
            if (!has_uniform && (is_load || is_plain_store))
                operand.value = code_.signed_bits(32, 32);
            else if (!is_copy)
                operand.value = code_.signed_bits(40, has_uniform && returns && is_blackwell() ? 23 : 24);
            if (!has_uniform) {
                operand.wide = is_query; // it has no bit that says so
                return;
            }
            unsigned wide = is_async_reduction ? 72 : returns || is_copy ? 70 : 90, descriptor = is_atomic ? 71 : 76;
            if (is_blackwell() && returns) { // uniform registers have two bits more: these stand elsewhere
                const bool is_float = (form_.code & 0xf) == 2 || (form_.code & 0xf) == 3;
                wide = 63;
                descriptor = is_float ? 90 : 76;
            } else if (is_blackwell() && is_reduction) {
                descriptor = 81;
            } else if (is_blackwell() && is_copy) {
                wide = 83;
            }
            operand.wide = code_.bit(wide);
            operand.is_descriptor = !is_async_reduction && code_.bit(descriptor);
            // On sm_80 the text names the descriptor where it holds a cache's policy, a hint.
            if (operand.is_descriptor && inst_.architecture < 90)
                operand.names_descriptor = code_.bit(101);
            else
                operand.names_descriptor = operand.is_descriptor;
            // Without it a register is an offset of 32 bits from the uniform pair.
            lacks_flag_ |= !operand.wide && operand.is_descriptor;
            lacks_flag_ |= !uniform(operand.uniform, is_load || is_query ? 32 : 64, 6);
            return;
        }
        if (space == 's' && form_.id != FormId::ldsm && form_.id != FormId::stsm)
            operand.scale = std::uint8_t(code_.bits(78, 2) == 0 ? 0 : code_.bits(78, 2) + 1);
        if (code_.bit(91)) {
            const bool store = form_.code == 0x387 || form_.code == 0x987 || form_.code == 0x388 ||
                               form_.code == 0x988 || form_.id == FormId::stsm;
            const unsigned first = second_register || store ? 64 : 32;
            lacks_flag_ |= !uniform(operand.uniform, first, 6);
        }
    }

    /// Of an mbarrier object: a uniform register, and for [z] one beside it.
    bool barrier_address(char space, Operand& operand) {
        if (form_.id == FormId::syncs_cctl && !code_.bit(uses_uniform)) return true; // of all
        operand.kind = Kind::address;
        operand.index = space == 'z' ? std::uint8_t(code_.bits(24, 8)) : zero_register;
        operand.value = code_.signed_bits(40, 24);
        return uniform(operand.uniform, space == 'z' ? 64 : 24, space == 'z' ? 6 : 8) & code_.bit(uses_uniform);
    }

    Instruction& inst_;
    Bits code_;
    bool lacks_flag_ = false; ///< of uniform registers or of addresses in pairs; or a register that is not there
    const Form& form_;
};

} // namespace

bool decode(Code code, std::uint32_t address, Instruction& instruction, unsigned architecture) {
    instruction = Instruction{};
    instruction.code = code;
    instruction.address = address;
    instruction.architecture = std::uint8_t(architecture);
    instruction.guard = std::uint8_t(code.bits(12, 3));
    instruction.guard_negated = code.bit(15);
    instruction.form = find_form(unsigned(code.bits(0, 12)), architecture);
    if (instruction.form == nullptr) return false;
    instruction.guard_uniform = instruction.form->mnemonic[0] == 'U' || instruction.form->mnemonic == "S2UR" ||
                                instruction.form->mnemonic == "LDCU" ||
                                instruction.form->mnemonic == "CS2UR" || // uniform data path
                                instruction.form->id == FormId::syncs_exch;
    return Decoder(instruction).decode();
}

bool has_operand(const Instruction& inst, const OperandSpec& spec) {
    switch (spec.only_with) {
    case 'x': return inst.has("X");
    case 'e': return inst.has("EX");
    case 'm': return inst.has("SP");
    case 'r': return inst.has("RED.POPC") || inst.has("RED.AND") || inst.has("RED.OR");
    case 'w': return inst.has("DEPBAR");
    case 'o': return inst.code.bits(81, 3) != true_predicate;
    default: break;
    }
    if (spec.kind == 'h') return inst.code.bit(76);
    const FormId id = inst.form->id;
    const auto is_merged = [&] {
        return inst.has("MERGE_C") || inst.has("PACK_AB_MERGE_C") || inst.has("UNPACK_B_MERGE_C");
    };
    if (spec.kind == 'a' && id == FormId::f2fp_hopper) return inst.has("PACK_AB") || inst.has("PACK_AB_MERGE_C");
    if (spec.kind != 'c') return true;
    if (id == FormId::lea || id == FormId::ulea) return inst.has("HI") && !inst.has("SX32");
    if (id == FormId::f2fp || id == FormId::f2fp_hopper) return is_merged();
    return true;
}

} // namespace ptarmigan::sass
