// SPDX-License-Identifier: Apache-2.0
// The fundamental and packed types of PTX (manual section 5.2) and what can be asked of one.
#pragma once

#include <cstdint>
#include <string_view>

namespace ptarmigan::ptx {

/// Bits, then unsigned, signed and floating types, then packed ones. `none` means "no type given".
/// PTM_SCALAR_TYPES(X): X(enumerator, spelling without the dot, size in bits, class).
#define PTM_SCALAR_TYPES(X)                                                                                            \
    X(none, "", 0, none)                                                                                               \
    X(pred, "pred", 1, pred)                                                                                           \
    X(b8, "b8", 8, bits)                                                                                               \
    X(b16, "b16", 16, bits)                                                                                            \
    X(b32, "b32", 32, bits)                                                                                            \
    X(b64, "b64", 64, bits)                                                                                            \
    X(b128, "b128", 128, bits)                                                                                         \
    X(u8, "u8", 8, unsigned_int)                                                                                       \
    X(u16, "u16", 16, unsigned_int)                                                                                    \
    X(u32, "u32", 32, unsigned_int)                                                                                    \
    X(u64, "u64", 64, unsigned_int)                                                                                    \
    X(s8, "s8", 8, signed_int)                                                                                         \
    X(s16, "s16", 16, signed_int)                                                                                      \
    X(s32, "s32", 32, signed_int)                                                                                      \
    X(s64, "s64", 64, signed_int)                                                                                      \
    X(f16, "f16", 16, floating)                                                                                        \
    X(bf16, "bf16", 16, floating)                                                                                      \
    X(tf32, "tf32", 32, floating)                                                                                      \
    X(f32, "f32", 32, floating)                                                                                        \
    X(f64, "f64", 64, floating)                                                                                        \
    X(f16x2, "f16x2", 32, packed)                                                                                      \
    X(bf16x2, "bf16x2", 32, packed)                                                                                    \
    X(f32x2, "f32x2", 64, packed)                                                                                      \
    X(u16x2, "u16x2", 32, packed)                                                                                      \
    X(s16x2, "s16x2", 32, packed)                                                                                      \
    X(u8x4, "u8x4", 32, packed)                                                                                        \
    X(s8x4, "s8x4", 32, packed)                                                                                        \
    X(e4m3, "e4m3", 8, floating)                                                                                       \
    X(e5m2, "e5m2", 8, floating)                                                                                       \
    X(e4m3x2, "e4m3x2", 16, packed)                                                                                    \
    X(e5m2x2, "e5m2x2", 16, packed)                                                                                    \
    X(e4m3x4, "e4m3x4", 32, packed)                                                                                    \
    X(e5m2x4, "e5m2x4", 32, packed)                                                                                    \
    X(e2m1x2, "e2m1x2", 8, packed)                                                                                     \
    X(e2m1x4, "e2m1x4", 16, packed)                                                                                    \
    X(e2m3x2, "e2m3x2", 16, packed)                                                                                    \
    X(e2m3x4, "e2m3x4", 32, packed)                                                                                    \
    X(e3m2x2, "e3m2x2", 16, packed)                                                                                    \
    X(e3m2x4, "e3m2x4", 32, packed)                                                                                    \
    X(ue8m0x2, "ue8m0x2", 16, packed)                                                                                  \
    X(texref, "texref", 64, opaque)                                                                                    \
    X(samplerref, "samplerref", 64, opaque)                                                                            \
    X(surfref, "surfref", 64, opaque)                                                                                  \
    X(e3m2, "e3m2", 6, floating)                                                                                       \
    X(e2m3, "e2m3", 6, floating)                                                                                       \
    X(e2m1, "e2m1", 4, floating)                                                                                       \
    X(ue8m0, "ue8m0", 8, floating)                                                                                     \
    X(ue4m3, "ue4m3", 8, floating)                                                                                     \
    X(s2f6x2, "s2f6x2", 16, packed)

enum class ScalarType : std::uint8_t {
#define X(name, spelling, bits, cls) name,
    PTM_SCALAR_TYPES(X)
#undef X
};

enum class TypeClass : std::uint8_t { none, pred, bits, unsigned_int, signed_int, floating, packed, opaque };

/// Size of a value of `type` in bits; a predicate counts as 1.
constexpr unsigned bit_size(ScalarType type) {
    constexpr std::uint8_t sizes[] = {
#define X(name, spelling, bits, cls) bits,
        PTM_SCALAR_TYPES(X)
#undef X
    };
    return sizes[static_cast<unsigned>(type)];
}

/// Bytes that a value of `type` takes in memory; 0 for `none` and `pred`, which have no memory form.
constexpr unsigned byte_size(ScalarType type) {
    return bit_size(type) / 8;
}

constexpr TypeClass type_class(ScalarType type) {
    constexpr TypeClass classes[] = {
#define X(name, spelling, bits, cls) TypeClass::cls,
        PTM_SCALAR_TYPES(X)
#undef X
    };
    return classes[static_cast<unsigned>(type)];
}

/// The spelling without the leading dot.
constexpr std::string_view spelling(ScalarType type) {
    constexpr std::string_view names[] = {
#define X(name, spelling, bits, cls) spelling,
        PTM_SCALAR_TYPES(X)
#undef X
    };
    return names[static_cast<unsigned>(type)];
}

constexpr bool is_signed(ScalarType type) {
    return type_class(type) == TypeClass::signed_int;
}
constexpr bool is_float(ScalarType type) {
    return type_class(type) == TypeClass::floating;
}
constexpr bool is_integer(ScalarType type) {
    return type_class(type) == TypeClass::signed_int || type_class(type) == TypeClass::unsigned_int;
}

/// State spaces (manual section 5.1). `generic` is what ld/st/atom use when no space is written.
enum class StateSpace : std::uint8_t { none, reg, sreg, constant, global, local, param, shared, tex, generic };
} // namespace ptarmigan::ptx
