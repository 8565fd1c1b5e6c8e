// SPDX-License-Identifier: Apache-2.0
#include "frontend/sass/special_registers.h"

namespace ptarmigan::sass {
namespace {

struct Row {
    unsigned number;
    std::string_view name, ptx;
};
constexpr Row rows[] = {
#define SASS_SPECIAL(number, name, ptx) {number, name, ptx},
#include "frontend/sass/special_registers.def"
#undef SASS_SPECIAL
};

const Row* find(unsigned number) {
    for (const Row& row : rows)
        if (row.number == number) return &row;
    return nullptr;
}

} // namespace

std::string special_register_name(unsigned number) {
    const Row* row = find(number);
    return row == nullptr ? "SR" + std::to_string(number) : std::string(row->name);
}

std::string_view special_register_in_ptx(unsigned number) {
    const Row* row = find(number);
    return row == nullptr ? std::string_view() : row->ptx;
}

} // namespace ptarmigan::sass
