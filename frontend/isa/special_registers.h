// SPDX-License-Identifier: Apache-2.0
// Special registers by name and by number.
#pragma once

#include "frontend/isa/words.h"
#include "frontend/ptx/types.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace ptarmigan::ptx {

/// Operand::index of an operand of Kind::special.
enum class SpecialRegister : std::uint16_t {
#define X(name, spelling, type, layout, major, minor, sm) name,
#include "frontend/isa/special_registers.def"
#undef X
};

constexpr std::size_t special_register_count = 0
#define X(name, spelling, type, layout, major, minor, sm) +1
#include "frontend/isa/special_registers.def"
#undef X
    ;

struct SpecialRegisterInfo {
    enum class Layout : std::uint8_t { scalar, vector, numbered };
    std::string_view spelling; ///< with the `%`; `#` stands for the number of a numbered one
    ScalarType type;
    Layout layout;
    std::uint8_t count; ///< of a numbered one
    std::uint8_t ptx_major, ptx_minor;
    std::uint16_t min_sm;
};

const SpecialRegisterInfo& special_register_info(SpecialRegister id);

/// What an identifier that starts with `%` may name.
struct SpecialRegisterName {
    bool found = false;
    SpecialRegister id{};
    std::uint8_t number = 0; ///< of a numbered one: Operand::component
};
SpecialRegisterName find_special_register(std::string_view name);

/// Whether it has components: %tid, %ctaid.
bool is_special_vector(std::string_view name);

/// Offers the names of all special registers, but for those with a number in their name.
void offer_special_registers(NearestSpelling& nearest);

/// "%tid.x", "%envreg3": the text of an operand.
std::string special_register_text(SpecialRegister id, unsigned component);

} // namespace ptarmigan::ptx
