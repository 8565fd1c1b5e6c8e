// SPDX-License-Identifier: Apache-2.0
// No vector code for AArch64 yet: the portable code, which compilers make NEON of, gives the same bits.
#include "runtime/tensor_core/vector_code.h"

#include "runtime/tensor_core/dense_pair.h"

namespace ptarmigan::runtime::tensor_core {
namespace {

std::uint64_t control_register() {
    std::uint64_t value = 0;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
}
void set_control_register(std::uint64_t value) {
    asm volatile("msr fpcr, %0" ::"r"(value));
}

} // namespace

bool can_run_vectors(Code) {
    return false;
}
Multiply vector_multiplier(Code, const MatrixProduct&, Accuracy) {
    return nullptr;
}
MultiplyGroup vector_group_multiplier(Code, const MatrixProduct&, Accuracy) {
    return nullptr;
}
bool has_tile_code(const MatrixProduct&, Accuracy) {
    return false;
}

// RMode of FPCR: nearest, toward zero, down, up. Its other bits stay clear: no flushing, no default NaN, no traps.
FloatMode::FloatMode(Rounding rounding) : before_(static_cast<unsigned>(control_register())) {
    constexpr std::uint64_t modes[] = {0, 3u << 22, 2u << 22, 1u << 22};
    set_control_register(modes[static_cast<unsigned>(rounding)]);
}
FloatMode::~FloatMode() {
    set_control_register(before_);
}

} // namespace ptarmigan::runtime::tensor_core
