// SPDX-License-Identifier: Apache-2.0
// What the linker needs to know about an architecture: which relocation types there are, how each is applied, and
// the stub through which code calls an import.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ptarmigan::translator {

enum class RelocationKind {
    ignored,      ///< no effect (R_*_NONE)
    relative,     ///< distance or page arithmetic to a target inside the image
    call,         ///< like relative, and may go through a stub
    address_slot, ///< refers to a slot (a GOT entry) that holds the target's address
    absolute,     ///< the loader writes a 64-bit address
};

struct RelocationArithmetic {
    std::size_t stub_size;
    std::uint8_t padding; ///< fills gaps between code; traps when run
    /// Throws ImageError for a type that the linker does not know.
    RelocationKind (*kind)(std::uint32_t type);
    std::size_t (*field_size)(std::uint32_t type); ///< bytes that apply() touches
    /// Patches the field at image offset `place` for `value` = target offset + addend. Throws ImageError when the
    /// distance does not fit.
    void (*apply)(std::uint8_t* field, std::uint32_t type, std::uint64_t place, std::uint64_t value);
    /// Writes a stub at image offset `stub` that jumps to the address in `slot`.
    void (*write_stub)(std::uint8_t* bytes, std::uint64_t stub, std::uint64_t slot);
};

const RelocationArithmetic& x86_64_relocations();
const RelocationArithmetic& aarch64_relocations();

} // namespace ptarmigan::translator
