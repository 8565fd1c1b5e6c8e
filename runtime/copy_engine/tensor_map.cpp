// SPDX-License-Identifier: Apache-2.0
// Where each field of a tensor map lies. All bit positions are here.
#include "runtime/copy_engine/tensor_map.h"

#include <algorithm>

namespace ptarmigan::runtime {
namespace {

using Bytes = std::uint8_t*;

// Flags at byte 8.
constexpr unsigned flag_im2col = 0, flag_rank = 4, flag_format = 7, flag_interleave = 11, flag_swizzle = 13,
                   flag_nan = 15, flag_tf32 = 16, flag_promotion = 17;
// Programs that write maps themselves (CUTLASS' Python, cuTile's compiler) set two more, which change no copy's result:
// bit 1, and bit 21 where the tensor takes 128 KiB and more.

// Ours, for what sm_90 doesn't have, in a byte that such programs write as zero: the atom, and the third bit of the
// swizzle.
constexpr unsigned later_atom = 0, later_swizzle_96 = 2;

constexpr unsigned at_flags = 8, at_stride = 12, at_stride_high = 28, at_dim = 32, at_step = 52, at_later = 54,
                   at_box = 55, at_corners = 56, at_pixels = 60, at_box_bytes = 64, at_pattern = 72;

template <class T> T get(const TensorMap& map, unsigned at) {
    T value;
    std::memcpy(&value, map.bytes + at, sizeof value);
    return value;
}

template <class T> void put(TensorMap& map, unsigned at, T value) {
    std::memcpy(map.bytes + at, &value, sizeof value);
}

std::uint32_t field(std::uint32_t flags, unsigned at, unsigned bits) {
    return flags >> at & ((1u << bits) - 1);
}

void put_flag(TensorMap& map, unsigned at, unsigned bits, std::uint32_t value) {
    const std::uint32_t mask = ((1u << bits) - 1) << at;
    put(map, at_flags, (get<std::uint32_t>(map, at_flags) & ~mask) | (value << at & mask));
}

void put_later(TensorMap& map, unsigned at, unsigned bits, unsigned value) {
    const unsigned mask = ((1u << bits) - 1) << at;
    map.bytes[at_later] = static_cast<std::uint8_t>((map.bytes[at_later] & ~mask) | (value << at & mask));
}

/// tf32 and its flushing form are f32 with a flag; packed types follow behind bf16.
void put_type(TensorMap& map, TensorType type) {
    const bool tf32 = type == TensorType::tf32 || type == TensorType::tf32_ftz;
    auto format = static_cast<std::uint32_t>(type);
    if (tf32)
        format = static_cast<std::uint32_t>(type == TensorType::tf32 ? TensorType::f32 : TensorType::f32_ftz);
    else if (is_packed(type))
        format -= 2;
    put_flag(map, flag_format, 4, format);
    put_flag(map, flag_tf32, 1, tf32);
}

bool get_type(std::uint32_t flags, TensorType& type) {
    const std::uint32_t format = field(flags, flag_format, 4);
    if (format > 13) return false;
    type = static_cast<TensorType>(format > 10 ? format + 2 : format);
    if (!field(flags, flag_tf32, 1)) return true;
    if (type == TensorType::f32)
        type = TensorType::tf32;
    else if (type == TensorType::f32_ftz)
        type = TensorType::tf32_ftz;
    return true;
}

void put_stride(TensorMap& map, unsigned index, std::uint64_t stride) {
    put(map, at_stride + 4 * index, static_cast<std::uint32_t>(stride >> 4));
    const unsigned at = at_stride_high + index / 2, shift = index % 2 * 4;
    map.bytes[at] = static_cast<std::uint8_t>((map.bytes[at] & ~(15u << shift)) | ((stride >> 36 & 15) << shift));
}

std::uint64_t get_stride(const TensorMap& map, unsigned index) {
    const std::uint64_t high = map.bytes[at_stride_high + index / 2] >> (index % 2 * 4) & 15;
    return high << 36 | std::uint64_t{get<std::uint32_t>(map, at_stride + 4 * index)} << 4;
}

void put_step(TensorMap& map, unsigned index, std::uint32_t step) {
    const auto all = get<std::uint16_t>(map, at_step);
    put(map, at_step, static_cast<std::uint16_t>((all & ~(7u << 3 * index)) | ((step - 1) & 7) << 3 * index));
}

/// Corners of rank 3, 4 and 5 have 16, 8 and 5 bits per dimension; the lower one's stand first, 16
/// bits for all.
unsigned corner_bits(unsigned rank) {
    return rank == 3 ? 16 : rank == 4 ? 8 : 5;
}

void put_corner(TensorMap& map, unsigned at, unsigned rank, const std::array<std::int32_t, 3>& corner) {
    const unsigned bits = corner_bits(rank);
    std::uint32_t all = 0;
    for (unsigned i = 0; i + 2 < rank; ++i)
        all |= (static_cast<std::uint32_t>(corner[i]) & ((1u << bits) - 1)) << bits * i;
    put(map, at, static_cast<std::uint16_t>(all));
}

void get_corner(const TensorMap& map, unsigned at, unsigned rank, std::array<std::int32_t, 3>& corner) {
    const unsigned bits = corner_bits(rank);
    const std::uint32_t all = get<std::uint16_t>(map, at);
    for (unsigned i = 0; i + 2 < rank; ++i)
        corner[i] = static_cast<std::int32_t>(all << (32 - bits * (i + 1))) >> (32 - bits);
}

/// How often the swizzle repeats, in bytes.
std::uint32_t pattern_bytes(Swizzle swizzle) {
    switch (swizzle) {
    case Swizzle::none: return 16;
    case Swizzle::span_32:
    case Swizzle::span_96: return 256;
    case Swizzle::span_64: return 512;
    case Swizzle::span_128: return 1024;
    }
    return 16;
}

} // namespace

unsigned tensor_element_bytes(TensorType type) {
    switch (type) {
    case TensorType::u8: return 1;
    case TensorType::u16:
    case TensorType::f16:
    case TensorType::bf16: return 2;
    case TensorType::u64:
    case TensorType::s64:
    case TensorType::f64: return 8;
    case TensorType::b4x16:
    case TensorType::b4x16_p64:
    case TensorType::b6x16_p32: return 0;
    default: return 4;
    }
}

unsigned tensor_element_bits(TensorType type) {
    if (type == TensorType::b6x16_p32) return 6;
    return is_packed(type) ? 4 : 8 * tensor_element_bytes(type);
}

unsigned span_bytes(Swizzle swizzle) {
    static constexpr unsigned bytes[] = {0, 32, 64, 128, 96};
    return bytes[static_cast<unsigned>(swizzle)];
}

bool is_floating(TensorType type) {
    return type >= TensorType::f16 && type <= TensorType::tf32_ftz;
}

bool decode(const TensorMap& map, TensorMapFields& fields) {
    const auto flags = get<std::uint32_t>(map, at_flags);
    const std::uint32_t later = map.bytes[at_later];
    fields.address = get<std::uint64_t>(map, 0);
    fields.im2col = field(flags, flag_im2col, 1) != 0;
    fields.rank = field(flags, flag_rank, 3) + 1;
    const std::uint32_t interleave = field(flags, flag_interleave, 2);
    if (fields.rank > max_tensor_rank || interleave > 2 || !get_type(flags, fields.type)) return false;
    if (fields.im2col && fields.rank < 3) return false;
    fields.interleave = static_cast<Interleave>(interleave);
    fields.swizzle = static_cast<Swizzle>(field(later, later_swizzle_96, 1) ? 4 : field(flags, flag_swizzle, 2));
    fields.atom = static_cast<SwizzleAtom>(field(later, later_atom, 2));
    fields.fill_nan = field(flags, flag_nan, 1) != 0;
    fields.promotion = field(flags, flag_promotion, 2);
    const auto steps = get<std::uint16_t>(map, at_step);
    for (unsigned i = 0; i < max_tensor_rank; ++i) {
        fields.dim[i] = std::uint64_t{get<std::uint32_t>(map, at_dim + 4 * i)} + 1;
        fields.step[i] = (steps >> 3 * i & 7u) + 1;
        fields.box[i] = map.bytes[at_box + i] + 1u;
        if (i < 4) fields.stride[i] = get_stride(map, i);
    }
    if (fields.im2col) {
        fields.channels = map.bytes[at_box] + 1u;
        fields.pixels = get<std::uint32_t>(map, at_pixels) + 1;
        get_corner(map, at_corners, fields.rank, fields.lower);
        get_corner(map, at_corners + 2, fields.rank, fields.upper);
    }
    return true;
}

void encode(const TensorMapFields& fields, TensorMap& map) {
    std::memset(&map, 0, sizeof map);
    put(map, 0, fields.address);
    put_flag(map, flag_im2col, 1, fields.im2col);
    put_flag(map, flag_rank, 3, fields.rank - 1);
    put_type(map, fields.type);
    put_flag(map, flag_interleave, 2, static_cast<std::uint32_t>(fields.interleave));
    put_flag(map, flag_nan, 1, fields.fill_nan);
    put_flag(map, flag_promotion, 2, fields.promotion);
    replace_field(map, TensorMapField::swizzle_mode, 0, static_cast<std::uint64_t>(fields.swizzle));
    put_later(map, later_atom, 2, static_cast<unsigned>(fields.atom));
    std::uint64_t elements = 1;
    for (unsigned i = 0; i < fields.rank; ++i) {
        put(map, at_dim + 4 * i, static_cast<std::uint32_t>(fields.dim[i] - 1));
        put_step(map, i, fields.step[i]);
        if (i + 1 < fields.rank) put_stride(map, i, fields.stride[i]);
        if (!fields.im2col) {
            map.bytes[at_box + i] = static_cast<std::uint8_t>(fields.box[i] - 1);
            elements *=
                fields.box[i] / fields.step[i]; // rounded down, unlike what a copy moves: so does the NVIDIA driver
        }
    }
    if (fields.im2col) {
        map.bytes[at_box] = static_cast<std::uint8_t>(fields.channels - 1);
        put(map, at_pixels, fields.pixels - 1);
        put_corner(map, at_corners, fields.rank, fields.lower);
        put_corner(map, at_corners + 2, fields.rank, fields.upper);
        elements = std::uint64_t{fields.channels} * fields.pixels;
    }
    put(map, at_box_bytes, static_cast<std::uint32_t>(elements * tensor_element_bits(fields.type) / 8));
    put(map, at_pattern, pattern_bytes(fields.swizzle));
}

void replace_field(TensorMap& map, TensorMapField which, unsigned index, std::uint64_t value) {
    const auto word = static_cast<std::uint32_t>(value);
    switch (which) {
    case TensorMapField::global_address: return put(map, 0, value);
    case TensorMapField::rank: return put_flag(map, flag_rank, 3, word);
    case TensorMapField::box_dim: map.bytes[at_box + index] = static_cast<std::uint8_t>(word - 1); return;
    case TensorMapField::global_dim: return put(map, at_dim + 4 * index, word - 1);
    case TensorMapField::global_stride: return put_stride(map, index, value);
    case TensorMapField::element_stride: return put_step(map, index, word);
    case TensorMapField::elemtype: return put_type(map, static_cast<TensorType>(word));
    case TensorMapField::interleave_layout: return put_flag(map, flag_interleave, 2, word);
    case TensorMapField::swizzle_mode:
        put_flag(map, flag_swizzle, 2, word & 3);
        return put_later(map, later_swizzle_96, 1, word >> 2 & 1);
    case TensorMapField::swizzle_atomicity: return put_later(map, later_atom, 2, word);
    case TensorMapField::fill_mode: return put_flag(map, flag_nan, 1, word);
    }
}

} // namespace ptarmigan::runtime
