// SPDX-License-Identifier: Apache-2.0
#include "translator/jit/relocations.h"

#include "translator/jit/image.h"

#include <llvm/BinaryFormat/ELF.h>

#include <cstring>
#include <string>

namespace ptarmigan::translator {
namespace {

using namespace llvm::ELF;

[[noreturn]] void unknown(const char* architecture, std::uint32_t type) {
    throw ImageError(std::string("image: unknown ") + architecture + " relocation type " + std::to_string(type));
}

void store32(std::uint8_t* field, std::uint32_t value) {
    std::memcpy(field, &value, 4);
}

std::uint32_t load32(const std::uint8_t* field) {
    std::uint32_t value;
    std::memcpy(&value, field, 4);
    return value;
}

void store32_checked(std::uint8_t* field, std::int64_t value) {
    if (value != static_cast<std::int32_t>(value)) throw ImageError("image: distance beyond 2 GiB");
    store32(field, static_cast<std::uint32_t>(value));
}

RelocationKind x86_kind(std::uint32_t type) {
    switch (type) {
    case R_X86_64_NONE: return RelocationKind::ignored;
    case R_X86_64_PC32:
    case R_X86_64_PC64: return RelocationKind::relative;
    case R_X86_64_PLT32: return RelocationKind::call;
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX: return RelocationKind::address_slot;
    case R_X86_64_64: return RelocationKind::absolute;
    default: unknown("x86-64", type);
    }
}

std::size_t x86_field_size(std::uint32_t type) {
    return type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4;
}

void x86_apply(std::uint8_t* field, std::uint32_t type, std::uint64_t place, std::uint64_t value) {
    const auto distance = static_cast<std::int64_t>(value - place);
    if (type == R_X86_64_PC64)
        std::memcpy(field, &distance, 8);
    else
        store32_checked(field, distance);
}

void x86_stub(std::uint8_t* bytes, std::uint64_t stub, std::uint64_t slot) {
    bytes[0] = 0xff; // jmp *slot(%rip)
    bytes[1] = 0x25;
    store32_checked(bytes + 2, static_cast<std::int64_t>(slot - (stub + 6)));
}

RelocationKind aarch64_kind(std::uint32_t type) {
    switch (type) {
    case R_AARCH64_NONE: return RelocationKind::ignored;
    case R_AARCH64_PREL32:
    case R_AARCH64_PREL64:
    case R_AARCH64_ADR_PREL_LO21:
    case R_AARCH64_ADR_PREL_PG_HI21:
    case R_AARCH64_ADD_ABS_LO12_NC:
    case R_AARCH64_LDST8_ABS_LO12_NC:
    case R_AARCH64_LDST16_ABS_LO12_NC:
    case R_AARCH64_LDST32_ABS_LO12_NC:
    case R_AARCH64_LDST64_ABS_LO12_NC:
    case R_AARCH64_LDST128_ABS_LO12_NC:
    case R_AARCH64_LD_PREL_LO19:
    case R_AARCH64_CONDBR19:
    case R_AARCH64_TSTBR14: return RelocationKind::relative;
    case R_AARCH64_CALL26:
    case R_AARCH64_JUMP26: return RelocationKind::call;
    case R_AARCH64_ADR_GOT_PAGE:
    case R_AARCH64_LD64_GOT_LO12_NC: return RelocationKind::address_slot;
    case R_AARCH64_ABS64: return RelocationKind::absolute;
    default: unknown("AArch64", type);
    }
}

std::size_t aarch64_field_size(std::uint32_t type) {
    return type == R_AARCH64_ABS64 || type == R_AARCH64_PREL64 ? 8 : 4;
}

/// Puts the low `width` bits of `value` at bit `shift` of the instruction.
void insert(std::uint8_t* field, std::int64_t value, unsigned width, unsigned shift) {
    const std::uint32_t mask = ((1u << width) - 1) << shift;
    const auto bits = static_cast<std::uint32_t>(value) << shift;
    store32(field, (load32(field) & ~mask) | (bits & mask));
}

/// Likewise for a distance in instructions, which must fit.
void insert_branch(std::uint8_t* field, std::int64_t distance, unsigned width, unsigned shift) {
    const std::int64_t limit = std::int64_t(1) << (width + 1);
    if (distance % 4 != 0 || distance < -limit || distance >= limit)
        throw ImageError("image: branch distance out of range");
    insert(field, distance / 4, width, shift);
}

void insert_adr(std::uint8_t* field, std::int64_t value) {
    if (value < -(1 << 20) || value >= (1 << 20)) throw ImageError("image: address distance out of range");
    insert(field, value & 3, 2, 29);
    insert(field, value >> 2, 19, 5);
}

/// Twelve low bits of an address, scaled by the access size.
void insert_low12(std::uint8_t* field, std::uint64_t value, unsigned scale) {
    const std::uint64_t low = value & 0xfff;
    if (low & ((1u << scale) - 1)) throw ImageError("image: misaligned constant");
    insert(field, static_cast<std::int64_t>(low >> scale), 12, 10);
}

std::int64_t page_distance(std::uint64_t value, std::uint64_t place) {
    return static_cast<std::int64_t>((value & ~0xfffull) - (place & ~0xfffull)) >> 12;
}

// Page arithmetic on image offsets is right because images are loaded at page boundaries.
void aarch64_apply(std::uint8_t* field, std::uint32_t type, std::uint64_t place, std::uint64_t value) {
    const auto distance = static_cast<std::int64_t>(value - place);
    switch (type) {
    case R_AARCH64_PREL32: return store32_checked(field, distance);
    case R_AARCH64_PREL64: std::memcpy(field, &distance, 8); return;
    case R_AARCH64_ADR_PREL_LO21: return insert_adr(field, distance);
    case R_AARCH64_ADR_PREL_PG_HI21:
    case R_AARCH64_ADR_GOT_PAGE: return insert_adr(field, page_distance(value, place));
    case R_AARCH64_ADD_ABS_LO12_NC:
    case R_AARCH64_LDST8_ABS_LO12_NC: return insert_low12(field, value, 0);
    case R_AARCH64_LDST16_ABS_LO12_NC: return insert_low12(field, value, 1);
    case R_AARCH64_LDST32_ABS_LO12_NC: return insert_low12(field, value, 2);
    case R_AARCH64_LDST64_ABS_LO12_NC:
    case R_AARCH64_LD64_GOT_LO12_NC: return insert_low12(field, value, 3);
    case R_AARCH64_LDST128_ABS_LO12_NC: return insert_low12(field, value, 4);
    case R_AARCH64_LD_PREL_LO19:
    case R_AARCH64_CONDBR19: return insert_branch(field, distance, 19, 5);
    case R_AARCH64_TSTBR14: return insert_branch(field, distance, 14, 5);
    case R_AARCH64_CALL26:
    case R_AARCH64_JUMP26: return insert_branch(field, distance, 26, 0);
    default: unknown("AArch64", type);
    }
}

void aarch64_stub(std::uint8_t* bytes, std::uint64_t stub, std::uint64_t slot) {
    store32(bytes, 0x90000010); // adrp x16, slot
    insert_adr(bytes, page_distance(slot, stub));
    store32(bytes + 4, 0xf9400210); // ldr x16, [x16, :lo12:slot]
    insert_low12(bytes + 4, slot, 3);
    store32(bytes + 8, 0xd61f0200); // br x16
}

} // namespace

const RelocationArithmetic& x86_64_relocations() {
    static const RelocationArithmetic arithmetic = {8, 0xcc, x86_kind, x86_field_size, x86_apply, x86_stub};
    return arithmetic;
}

const RelocationArithmetic& aarch64_relocations() {
    static const RelocationArithmetic arithmetic = {16,          0x00, aarch64_kind, aarch64_field_size, aarch64_apply,
                                                    aarch64_stub};
    return arithmetic;
}

} // namespace ptarmigan::translator
