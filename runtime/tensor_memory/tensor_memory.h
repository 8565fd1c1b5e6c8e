// SPDX-License-Identifier: Apache-2.0
// The tensor memory of one CTA (manual 9.7.16.1): 128 lanes of 512 columns of 32 bits, and who has which columns.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

namespace ptarmigan::runtime {

/// An address in tensor memory: lane in the upper half, column in the lower one. Bits 30 and 31 are not looked at:
/// CUTLASS keeps there which byte of a column it means.
struct TensorMemoryAddress {
    unsigned lane, column;
    explicit TensorMemoryAddress(std::uint32_t bits) : lane(bits >> 16 & 0x3fff), column(bits & 0xffff) {}
};

/// Not thread-safe: belongs to a worker.
class TensorMemory {
public:
    static constexpr unsigned lanes = 128, columns = 512, unit = 32; ///< columns are given in units

    TensorMemory() : words_(new std::uint32_t[lanes * columns]) {}

    /// The lanes of a column.
    std::uint32_t* column(unsigned number) { return words_.get() + std::size_t{number} * lanes; }
    std::uint32_t& word(unsigned lane, unsigned number) { return column(number)[lane]; }
    /// These columns exist, and belong to allocations.
    bool holds(unsigned first, unsigned count) const;

    /// The first of `count` columns that are free here and, if it is given, in `peer`; they are taken. None: there are
    /// not so many in a row, now.
    std::optional<unsigned> allocate(unsigned count, TensorMemory* peer = nullptr);
    /// False if those columns are no allocation.
    bool free(unsigned first, unsigned count);
    bool is_allocation(unsigned first, unsigned count) const;
    bool any_allocated() const { return taken_ != 0; }

    bool relinquished = false; ///< the right to allocate
    /// .cta_group::2: what the peer has allocated (first column, count) or wants freed, and this CTA has not yet.
    std::deque<std::array<unsigned, 2>> allocated_by_peer, freed_by_peer;

private:
    static std::uint32_t units_of(unsigned first, unsigned count);
    std::unique_ptr<std::uint32_t[]> words_;
    std::uint32_t taken_ = 0;                ///< by unit
    std::array<std::uint16_t, 16> counts_{}; ///< columns of the allocation that begins with the unit
};

} // namespace ptarmigan::runtime
