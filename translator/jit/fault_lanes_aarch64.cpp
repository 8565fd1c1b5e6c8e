// SPDX-License-Identifier: Apache-2.0
// Decodes the loads and stores of A64 (Arm Architecture Reference Manual, C4.1.94 "Loads and Stores") that LLVM makes
// of our accesses.
#include "translator/fault_lanes.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace ptarmigan::translator {
namespace {

/// What an instruction accessed.
struct Access {
    std::uint64_t address;
    unsigned bytes;
};

/// Fields of an instruction word, with the registers it ran with.
class Word {
public:
    Word(std::uint32_t bits, const MachineState& state) : bits_(bits), state_(state) {}

    std::uint32_t field(unsigned high, unsigned low) const { return bits_ >> low & ((2u << (high - low)) - 1); }
    std::int64_t signed_field(unsigned high, unsigned low) const {
        return std::int64_t(std::uint64_t{field(high, low)} << (63 - (high - low))) >> (63 - (high - low));
    }
    std::uint64_t base() const { return state_.general[field(9, 5)]; } // 31 is SP
    std::uint64_t index() const {
        const unsigned number = field(20, 16);
        const std::uint64_t value = number == 31 ? 0 : state_.general[number]; // 31 is XZR
        switch (field(15, 13)) {
        case 2: return std::uint32_t(value);
        case 6: return std::uint64_t(std::int64_t(std::int32_t(value)));
        default: return value;
        }
    }

private:
    std::uint32_t bits_;
    const MachineState& state_;
};

std::optional<Access> pair(const Word& word) {
    const bool vectors = word.field(26, 26);
    const unsigned kind = word.field(31, 30), bytes = vectors ? 4u << kind : kind == 2 ? 8 : 4;
    const bool after = word.field(24, 23) == 1; // the offset is added behind the access
    const std::int64_t offset = after ? 0 : word.signed_field(21, 15) * bytes;
    return Access{word.base() + std::uint64_t(offset), 2 * bytes};
}

std::optional<Access> single(const Word& word) {
    const bool vectors = word.field(26, 26);
    const unsigned scale = vectors && word.field(23, 23) ? 4 : word.field(31, 30), bytes = 1u << scale;
    if (word.field(25, 24) == 1) return Access{word.base() + (std::uint64_t{word.field(21, 10)} << scale), bytes};
    if (word.field(25, 24) != 0) return std::nullopt;
    if (!word.field(21, 21)) {
        const std::int64_t offset = word.field(11, 10) == 1 ? 0 : word.signed_field(20, 12);
        return Access{word.base() + std::uint64_t(offset), bytes};
    }
    if (word.field(11, 10) == 2) return Access{word.base() + (word.index() << (word.field(12, 12) ? scale : 0)), bytes};
    if (word.field(11, 10) == 0) return Access{word.base(), bytes}; // atomics
    return std::nullopt;
}

/// LD1 and ST1 of whole registers or of one element.
std::optional<Access> structures(const Word& word) {
    if (!word.field(24, 24)) {
        unsigned registers = 0;
        switch (word.field(15, 12)) {
        case 7: registers = 1; break;
        case 10: registers = 2; break;
        case 6: registers = 3; break;
        case 2: registers = 4; break;
        default: return std::nullopt;
        }
        return Access{word.base(), registers * (word.field(30, 30) ? 16 : 8)};
    }
    if (word.field(21, 21)) return std::nullopt;
    switch (word.field(15, 13)) {
    case 0: return Access{word.base(), 1};
    case 2: return Access{word.base(), 2};
    case 4: return Access{word.base(), word.field(10, 10) ? 8u : 4u};
    case 6: return Access{word.base(), 1u << word.field(11, 10)};
    default: return std::nullopt;
    }
}

std::optional<Access> decode(const FaultPlace& place) {
    std::uint32_t bits = 0;
    if (place.code_size < sizeof bits || !place.state) return std::nullopt;
    std::memcpy(&bits, place.code, sizeof bits);
    const Word word(bits, *place.state);
    if (word.field(29, 27) == 5) return pair(word);
    if (word.field(29, 27) == 7) return single(word);
    if (word.field(31, 31) == 0 && word.field(29, 25) == 6) return structures(word);
    if (word.field(29, 24) == 8) return Access{word.base(), 1u << word.field(31, 30)}; // exclusive, acquire, release
    return std::nullopt;
}

std::uint64_t lane_bit(std::uint32_t lane) {
    return lane < 64 ? std::uint64_t(1) << lane : 0;
}

/// The CPU names the first byte that it could not access.
bool is_refused(const FaultPlace& place, std::uint64_t address, unsigned bytes) {
    constexpr std::uint64_t smallest_page = 4096;
    return address + bytes > place.address && address / smallest_page <= place.address / smallest_page;
}

} // namespace

std::uint64_t faulting_lanes(const AccessForm& form, const FaultPlace& place) {
    if (form.kind == AccessForm::Kind::noted)
        return lane_bit(place.noted_lane + (form.lanes.empty() ? 0u : form.lanes[0]));
    const std::optional<Access> access = decode(place);
    if (!access || !place.has_address) return 0;
    switch (form.kind) {
    case AccessForm::Kind::elements: {
        if (access->bytes != form.element_bytes * form.lanes.size()) return 0;
        std::uint32_t lowest = AccessForm::no_lane;
        for (unsigned i = 0; i < form.lanes.size(); ++i)
            if (is_refused(place, access->address + std::uint64_t{i} * form.element_bytes, form.element_bytes))
                lowest = std::min<std::uint32_t>(lowest, form.lanes[i]);
        return lane_bit(lowest);
    }
    case AccessForm::Kind::lanes: {
        if (form.element_bytes && access->bytes > form.element_bytes) return 0; // merged with another lane's
        std::uint64_t lanes = 0;
        for (const std::uint8_t lane : form.lanes) lanes |= lane_bit(lane);
        return lanes;
    }
    case AccessForm::Kind::gather: // LLVM makes single accesses of it
    case AccessForm::Kind::noted: break;
    }
    return 0;
}

} // namespace ptarmigan::translator
