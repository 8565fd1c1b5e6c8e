// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_memory/tensor_memory.h"

namespace ptarmigan::runtime {

std::uint32_t TensorMemory::units_of(unsigned first, unsigned count) {
    return ((1u << count / unit) - 1) << first / unit;
}

bool TensorMemory::holds(unsigned first, unsigned count) const {
    if (first >= columns || count > columns - first) return false;
    for (unsigned i = first / unit; i * unit < first + count; ++i)
        if ((taken_ >> i & 1) == 0) return false;
    return true;
}

std::optional<unsigned> TensorMemory::allocate(unsigned count, TensorMemory* peer) {
    const std::uint32_t taken = taken_ | (peer ? peer->taken_ : 0);
    for (unsigned first = 0; first + count <= columns; first += count) { // powers of two, at their multiples
        const std::uint32_t units = units_of(first, count);
        if ((taken & units) != 0) continue;
        for (TensorMemory* memory : {this, peer}) {
            if (!memory) continue;
            memory->taken_ |= units;
            memory->counts_.at(first / unit) = static_cast<std::uint16_t>(count);
        }
        return first;
    }
    return std::nullopt;
}

bool TensorMemory::is_allocation(unsigned first, unsigned count) const {
    return first % unit == 0 && first < columns && counts_.at(first / unit) == count && count != 0;
}

bool TensorMemory::free(unsigned first, unsigned count) {
    if (!is_allocation(first, count)) return false;
    taken_ &= ~units_of(first, count);
    counts_.at(first / unit) = 0;
    return true;
}

} // namespace ptarmigan::runtime
