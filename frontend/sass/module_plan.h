// SPDX-License-Identifier: Apache-2.0
// What all kernels of a cubin share, so that each can be lifted by itself: where functions lie in the space of code,
// and where the kernels' tables of constants lie in the one variable that holds them.
#pragma once

#include "frontend/sass/cubin.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

namespace ptarmigan::sass {

/// The variable that the tables of all kernels are in.
inline constexpr std::string_view tables_variable = "sass_tables";

/// Constant once it is made.
struct ModulePlan {
    explicit ModulePlan(const Cubin& cubin);

    /// Where the sections of functions begin in the space of code that all kernels of the module share, by section.
    std::map<std::size_t, std::uint32_t> bases;
    /// Of bank 2, where a register chooses among its constants: places in the variable by section, in its order.
    std::map<std::size_t, std::uint32_t> tables;
    std::uint32_t table_bytes = 0;
    bool functions_read_window = false; ///< a function reads the address of the parameters

    /// The section of a kernel's bank 2, or null.
    static const CubinSection* table_of(const Cubin& cubin, const CubinKernel& kernel);
};

/// The address of a function of a section in `bases`; none of other symbols.
std::optional<std::uint64_t> function_address(const Cubin& cubin, const std::map<std::size_t, std::uint32_t>& bases,
                                              const CubinSymbol& symbol, std::int64_t addend);

/// Relocations of the halves of a kernel's address, as code names it.
inline constexpr std::uint32_t kernel_low_half = 62, kernel_high_half = 63;
/// The kernel whose address, as launches from the device take it, is meant; null for other symbols.
const CubinKernel* kernel_of(const Cubin& cubin, const CubinRelocation& relocation);

/// Whether code of the section reads the address of the parameters, by what it holds, executed or not.
bool reads_parameter_window(const Cubin& cubin, const CubinSection& section);

} // namespace ptarmigan::sass
