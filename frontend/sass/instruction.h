// SPDX-License-Identifier: Apache-2.0
// A decoded machine instruction: its row of the table, its modifiers and its operands. No meaning: that is lift*.cpp's.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace ptarmigan::sass {

/// The 128 bits of an instruction, lowest first.
struct Code {
    std::uint64_t low = 0, high = 0;

    /// Bits `first` to `first + count - 1`, at most 64 of them.
    constexpr std::uint64_t bits(unsigned first, unsigned count) const {
        std::uint64_t value = first >= 64 ? high >> (first - 64) : low >> first;
        if (first < 64 && first + count > 64) value |= high << (64 - first);
        return count >= 64 ? value : value & ((std::uint64_t(1) << count) - 1);
    }
    constexpr bool bit(unsigned index) const { return bits(index, 1) != 0; }
    constexpr std::int64_t signed_bits(unsigned first, unsigned count) const {
        const std::uint64_t sign = std::uint64_t(1) << (count - 1);
        return static_cast<std::int64_t>((bits(first, count) ^ sign) - sign);
    }
};

inline constexpr std::uint8_t zero_register = 255; ///< RZ
/// URZ. It is number 63 before sm_100, where there are 63 uniform registers; from there on there are 80.
inline constexpr std::uint8_t zero_uniform = 255;
inline constexpr unsigned uniform_count = 80;
/// Bytes of an instruction.
inline constexpr std::uint32_t instruction_size = 16;
inline constexpr std::uint8_t true_predicate = 7; ///< PT, UPT
inline constexpr std::uint8_t no_group = 7;       ///< of a warpgroup's products: none ends here

/// What an immediate of 32 bits stands for.
enum class ImmediateType : std::uint8_t { bits, signed_int, f32, f64_high, f16x2 };

struct Operand {
    enum class Kind : std::uint8_t {
        none,
        reg,               ///< R index
        uniform,           ///< UR index
        predicate,         ///< P index
        uniform_predicate, ///< UP index
        immediate,         ///< value
        constant,          ///< c[bank][value], with R index unless that is RZ
        address,           ///< [R index + UR uniform + value]
        special,           ///< SR value
        target,            ///< byte offset `value` of an instruction of the same section
        register_target,   ///< R index + value, a byte offset in the same section
        number,            ///< a field that is printed as it is
    };

    Kind kind = Kind::none;
    std::uint8_t index = 0;
    std::uint8_t uniform = zero_uniform; ///< of an address
    std::uint8_t bank = 0;
    std::uint8_t swizzle = 0; ///< of two halves: 0 both, 1 as f32, 2 .H0_H0, 3 .H1_H1
    std::uint8_t part = 0;    ///< of a register: its byte, or half where 1 is .H1
    std::uint8_t scale = 0;   ///< of an address: .X4 2, .X8 3, .X16 4
    bool negated = false;     ///< -x; of a predicate !p
    bool absolute = false;
    bool inverted = false;         ///< ~x
    bool wide = false;             ///< of an address: the register is a pair
    bool is_descriptor = false;    ///< of an address: UR uniform names the memory, which is all of it
    bool names_descriptor = false; ///< and the disassembler prints it
    bool bindless = false;         ///< of a constant: the bank is in UR uniform
    bool reuse = false;
    ImmediateType type = ImmediateType::bits;
    std::int64_t value = 0;
};

struct Form;

struct Instruction {
    static constexpr unsigned max_operands = 9;
    static constexpr unsigned max_modifiers = 10;

    const Form* form = nullptr; ///< null: not in the table
    Code code;
    Code unread;               ///< set bits that the row says nothing about
    std::uint32_t address = 0; ///< byte offset in its section
    std::uint8_t architecture = 80;
    std::uint8_t guard = true_predicate;
    bool guard_negated = false;
    bool guard_uniform = false;
    std::uint8_t modifier_count = 0, operand_count = 0;
    std::array<std::string_view, max_modifiers> modifiers{}; ///< words of the row, as long-lived as the table
    std::array<Operand, max_operands> operands{};

    bool has(std::string_view modifier) const {
        for (unsigned i = 0; i < modifier_count; ++i)
            if (modifiers[i] == modifier) return true;
        return false;
    }
};

/// RZ; and RZ, URZ or the number 0.
inline bool is_zero_register(const Operand& operand) {
    return operand.kind == Operand::Kind::reg && operand.index == zero_register;
}
inline bool is_zero(const Operand& operand) {
    return is_zero_register(operand) || (operand.kind == Operand::Kind::uniform && operand.index == zero_uniform) ||
           (operand.kind == Operand::Kind::immediate && operand.value == 0);
}

struct OperandSpec;
/// Whether `inst` has the operand of its row that `spec` describes: some exist with a modifier only (LEA's carry with
/// .X), and their bits say nothing else.
bool has_operand(const Instruction& inst, const OperandSpec& spec);

/// Decodes one instruction. False, with as much as is known in `instruction`, where the opcode is not in the table
/// (`form` is null), a modifier has no meaning or a bit is set that the row does not name (`form` is set).
bool decode(Code code, std::uint32_t address, Instruction& instruction, unsigned architecture = 80);

/// The text that NVIDIA's disassembler prints for it, without its comments; targets are printed as numbers.
std::string disassemble(const Instruction& instruction);

/// A few words for a message: mnemonic and modifiers, or the number of an opcode that is not in the table.
std::string describe(const Instruction& instruction);

/// "0x" and digits as the disassembler and PTX write them.
std::string hexadecimal(std::uint64_t value);

} // namespace ptarmigan::sass
