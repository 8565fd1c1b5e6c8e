// SPDX-License-Identifier: Apache-2.0
#include "frontend/sass/module_plan.h"

#include "frontend/sass/instruction.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>
#include <string>

namespace ptarmigan::sass {
namespace {

constexpr std::uint64_t space_limit = std::uint64_t(1) << 30;
constexpr std::uint32_t function_alignment = 128, table_alignment = 16;
constexpr std::size_t code_size = 16; ///< bytes of an instruction

Code code_at(const CubinSection& section, std::size_t offset) {
    Code code;
    for (unsigned byte = 0; byte < 8; ++byte) {
        code.low |= std::uint64_t(section.bytes[offset + byte]) << 8 * byte;
        code.high |= std::uint64_t(section.bytes[offset + 8 + byte]) << 8 * byte;
    }
    return code;
}

// Of an operand c[bank][offset], where there is one.
std::uint64_t bank_of(const Code& code) {
    return code.low >> 54 & 0x1f;
}
std::uint64_t offset_of(const Code& code) {
    return (code.low & 0xfff) == 0x7ac ? code.low >> 37 & 0x1ffff : code.low >> 38 & 0xffff; // LDCU
}

/// Whether code loads from bank 2.
bool loads_from_table(const CubinSection& section) {
    constexpr std::uint64_t loads[] = {0xb82, 0xab9, 0xabb, 0x7ac}; // LDC, ULDC, LDCU
    for (std::size_t at = 0; at + code_size <= section.bytes.size(); at += code_size) {
        const Code code = code_at(section, at);
        if (bank_of(code) == 2 && std::find(std::begin(loads), std::end(loads), code.low & 0xfff) != std::end(loads))
            return true;
    }
    return false;
}

} // namespace

ModulePlan::ModulePlan(const Cubin& cubin) {
    std::uint64_t at = 0;
    for (const CubinKernel& kernel : cubin.kernels)
        at = std::max<std::uint64_t>(at, cubin.sections[kernel.text].bytes.size());
    for (const CubinFunctions& functions : cubin.functions) {
        at = (at + function_alignment - 1) / function_alignment * function_alignment;
        if (at + cubin.sections[functions.text].bytes.size() > space_limit) break;
        bases.emplace(functions.text, std::uint32_t(at));
        at += cubin.sections[functions.text].bytes.size();
    }
    const auto any_function = [&](const auto& asked) {
        return std::any_of(cubin.functions.begin(), cubin.functions.end(),
                           [&](const CubinFunctions& functions) { return asked(cubin.sections[functions.text]); });
    };
    functions_read_window = cubin.architecture >= 90 && any_function([&](const CubinSection& section) {
                                return reads_parameter_window(cubin, section);
                            });
    const bool functions_load = any_function(loads_from_table);
    std::uint64_t end = 0;
    for (const CubinKernel& kernel : cubin.kernels) {
        const CubinSection* table = table_of(cubin, kernel);
        if (table == nullptr || table->bytes.empty() || !table->relocations.empty()) continue;
        if (!functions_load && !loads_from_table(cubin.sections[kernel.text])) continue;
        if (end + table->bytes.size() > space_limit) break;
        const bool is_new = tables.emplace(std::size_t(table - cubin.sections.data()), std::uint32_t(end)).second;
        if (is_new) end = (end + table->bytes.size() + table_alignment - 1) / table_alignment * table_alignment;
    }
    table_bytes = std::uint32_t(end);
}

const CubinSection* ModulePlan::table_of(const Cubin& cubin, const CubinKernel& kernel) {
    const CubinSection* section = cubin.find_section(".nv.constant2." + std::string(kernel.name));
    return section != nullptr ? section : cubin.find_section(".nv.constant2");
}

const CubinKernel* kernel_of(const Cubin& cubin, const CubinRelocation& relocation) {
    const CubinSymbol& symbol = cubin.symbols[relocation.symbol];
    const auto found = std::find_if(cubin.kernels.begin(), cubin.kernels.end(), [&](const CubinKernel& kernel) {
        return kernel.text == symbol.section && kernel.name == symbol.name;
    });
    const bool is_whole = symbol.value == 0 && relocation.addend == 0;
    return found != cubin.kernels.end() && is_whole ? &*found : nullptr;
}

std::optional<std::uint64_t> function_address(const Cubin& cubin, const std::map<std::size_t, std::uint32_t>& bases,
                                              const CubinSymbol& symbol, std::int64_t addend) {
    if (symbol.type != function_symbol && symbol.type != section_symbol) return {};
    const auto found = bases.find(symbol.section);
    if (found == bases.end()) return {};
    const std::uint64_t inside = symbol.value + std::uint64_t(addend);
    if (inside >= cubin.sections[symbol.section].bytes.size()) return {};
    return found->second + inside;
}

bool reads_parameter_window(const Cubin& cubin, const CubinSection& section) {
    constexpr std::uint64_t before_hopper[] = {0x40, 0x44}, on_hopper[] = {0xc0, 0xc4, 0x198, 0x19c},
                            on_blackwell[] = {0x348, 0x34c};
    const auto is_place = [&](std::uint64_t offset) {
        using Places = std::span<const std::uint64_t>;
        const Places places = cubin.architecture >= 100  ? Places(on_blackwell)
                              : cubin.architecture >= 90 ? Places(on_hopper)
                                                         : Places(before_hopper);
        return std::find(places.begin(), places.end(), offset) != places.end();
    };
    for (std::size_t at = 0; at + code_size <= section.bytes.size(); at += code_size) {
        const Code code = code_at(section, at);
        if (bank_of(code) != 0 || !is_place(offset_of(code))) continue;
        Instruction inst;
        if (!decode(code, std::uint32_t(at), inst, cubin.architecture)) continue; // it can't be lifted
        for (unsigned i = 0; i < inst.operand_count; ++i)
            if (inst.operands[i].kind == Operand::Kind::constant && inst.operands[i].bank == 0 &&
                is_place(std::uint64_t(inst.operands[i].value)))
                return true;
    }
    return false;
}

} // namespace ptarmigan::sass
