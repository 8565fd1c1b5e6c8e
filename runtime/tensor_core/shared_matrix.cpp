// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_core/shared_matrix.h"

#include <cstring>

namespace ptarmigan::runtime::tensor_core {
namespace {

/// Bits `from` and up of a descriptor, 14 of them: sixteenths of an address or offset.
std::uint32_t field(std::uint64_t descriptor, unsigned from) {
    return static_cast<std::uint32_t>(descriptor >> from & 0x3fff) << 4;
}

typedef std::uint16_t Halves __attribute__((vector_size(16)));

Halves load(const std::uint8_t* from) {
    Halves halves;
    std::memcpy(&halves, from, sizeof halves);
    return halves;
}

/// Eight rows of eight halves become columns, `pitch` bytes apart.
void transpose(const Halves (&rows)[8], std::uint8_t* to, std::size_t pitch) {
    Halves pairs[8], quads[8];
    for (unsigned i = 0; i < 4; ++i) {
        pairs[2 * i] = __builtin_shufflevector(rows[i], rows[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
        pairs[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
    for (unsigned i = 0; i < 4; ++i) {
        quads[2 * i] = __builtin_shufflevector(pairs[i], pairs[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
        quads[2 * i + 1] = __builtin_shufflevector(pairs[i], pairs[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
    for (unsigned i = 0; i < 4; ++i) {
        const Halves low = __builtin_shufflevector(quads[i], quads[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
        const Halves high = __builtin_shufflevector(quads[i], quads[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
        std::memcpy(to + 2 * i * pitch, &low, sizeof low);
        std::memcpy(to + (2 * i + 1) * pitch, &high, sizeof high);
    }
}

} // namespace

SharedMatrix::SharedMatrix(std::uint64_t descriptor)
    : start_(field(descriptor, 0)), leading_(field(descriptor, 16)), stride_(field(descriptor, 32)),
      base_offset_(static_cast<std::uint32_t>(descriptor >> 49 & 7) << 7) {
    constexpr std::uint32_t spans[] = {16, 128, 64, 32};
    span_ = spans[descriptor >> 62];
    mask_ = span_ / chunk - 1;
}

const std::uint8_t* SharedMatrix::place(const SharedMemory& memory, std::uint32_t offset) const {
    std::uint32_t address = start_ + offset;
    address ^= ((address - base_offset_) >> 7 & mask_) << 4;
    if (address + chunk <= memory.size) return memory.bytes + address;
    return nullptr;
}

bool SharedMatrix::read_lines(const SharedMemory& memory, unsigned first, unsigned count, unsigned line_bytes,
                              std::uint8_t* lines) const {
    for (unsigned line = first; line < first + count; ++line) {
        const std::uint32_t row = line / 8 * stride_ + line % 8 * span_;
        for (unsigned byte = 0; byte < line_bytes; byte += chunk, lines += chunk) {
            const std::uint8_t* from = place(memory, row + byte / span_ * leading_ + byte % span_);
            if (!from) return false;
            std::memcpy(lines, from, chunk);
        }
    }
    return true;
}

bool SharedMatrix::read_across(const SharedMemory& memory, unsigned first, unsigned count, unsigned line_bytes,
                               std::uint8_t* lines) const {
    const unsigned lines_of_span = span_ / 2;
    const bool swizzled = span_ != chunk;
    for (unsigned line = first; line < first + count; line += 8, lines += std::size_t{8} * line_bytes)
        for (unsigned byte = 0; byte < line_bytes; byte += chunk) {
            const std::uint32_t piece =
                swizzled ? line / lines_of_span * leading_ + line % lines_of_span * 2 + byte / chunk * stride_
                         : line / 8 * stride_ + byte / chunk * leading_;
            Halves rows[8];
            for (unsigned k = 0; k < 8; ++k) {
                const std::uint8_t* from = place(memory, piece + k * span_);
                if (!from) return false;
                rows[k] = load(from);
            }
            transpose(rows, lines + byte, line_bytes);
        }
    return true;
}

} // namespace ptarmigan::runtime::tensor_core
