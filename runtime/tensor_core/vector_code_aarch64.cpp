// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_core/vector_code.h"

#include "runtime/tensor_core/dense_pair.h"
#include "runtime/tensor_core/vector_product.h"

#include <sys/auxv.h>

namespace ptarmigan::runtime::tensor_core {
namespace {

/// Bits of AT_HWCAP2, fixed by the Linux ABI.
bool has_i8mm() {
    static const bool i8mm = (getauxval(AT_HWCAP2) >> 13 & 1) != 0;
    return i8mm;
}
bool has_bf16() {
    static const bool bf16 = (getauxval(AT_HWCAP2) >> 14 & 1) != 0;
    return bf16;
}

std::uint64_t control_register() {
    std::uint64_t value = 0;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
}
void set_control_register(std::uint64_t value) {
    asm volatile("msr fpcr, %0" ::"r"(value));
}

} // namespace

bool can_run_vectors(Code code) {
    return code == Code::neon; // every AArch64 of Linux has it
}

Multiply vector_multiplier(Code, const MatrixProduct& product, Accuracy accuracy) {
    Multiply found = nullptr;
    if (product.unit == Unit::integer && has_i8mm()) found = neon_i8mm_multiplier(product);
    if (!found && accuracy == Accuracy::fast && has_bf16()) found = neon_bf16_multiplier(product);
    return found ? found : neon_multiplier(product, accuracy);
}

MultiplyGroup vector_group_multiplier(Code, const MatrixProduct& product, Accuracy accuracy) {
    MultiplyGroup found = nullptr;
    if (product.unit == Unit::integer && has_i8mm()) found = neon_i8mm_group_multiplier(product);
    if (!found && accuracy == Accuracy::fast && has_bf16()) found = neon_bf16_group_multiplier(product);
    return found ? found : neon_group_multiplier(product, accuracy);
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
