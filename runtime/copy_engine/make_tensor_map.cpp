// SPDX-License-Identifier: Apache-2.0
// The checks of cuTensorMapEncode*: the driver's manual, and what the H200's driver refuses besides
// (tests/recordings/async_copies).
#include "runtime/copy_engine/tensor_map.h"

namespace ptarmigan::runtime {
namespace {

using Request = TensorMapRequest;

/// CUtensorMapDataType to TensorType: f64, bf16 and the flushing f32 stand in another order.
bool type_of(unsigned type, bool later_gpus, TensorType& to) {
    using T = TensorType;
    static constexpr T types[] = {T::u8,       T::u16,   T::u32,       T::s32,      T::u64,     T::s64,
                                  T::f16,      T::f32,   T::f64,       T::bf16,     T::f32_ftz, T::tf32,
                                  T::tf32_ftz, T::b4x16, T::b4x16_p64, T::b6x16_p32};
    if (type >= tensor_type_count) return false;
    to = types[type];
    return later_gpus || !is_packed(to);
}

/// CU_TENSOR_MAP_SWIZZLE_*: 4 to 6 are 128 bytes with larger atoms.
bool set_swizzle(unsigned swizzle, bool atoms, TensorMapFields& fields) {
    if (swizzle > 6 || (swizzle > 3 && !atoms)) return false;
    fields.swizzle = static_cast<Swizzle>(swizzle > 3 ? 3 : swizzle);
    fields.atom = static_cast<SwizzleAtom>(swizzle > 3 ? swizzle - 3 : 0);
    return true;
}

/// What the driver's manual wants of packed types.
bool check_packed(const TensorMapFields& fields) {
    if (!is_packed(fields.type)) return true;
    if (fields.dim[0] % (is_padded(fields.type) ? 128 : 2) != 0) return false;
    if (!is_padded(fields.type) || fields.swizzle == Swizzle::none) return true;
    if (fields.interleave != Interleave::none || fields.swizzle != Swizzle::span_128) return false;
    // Atoms of 64 bytes are for what is stored, and of these types that is one.
    return fields.atom <= SwizzleAtom::bytes_32 ||
           (fields.atom == SwizzleAtom::bytes_64 && fields.type == TensorType::b6x16_p32);
}

/// What all three entries check alike.
bool set_tensor(const Request& request, bool later_gpus, TensorMapFields& fields) {
    const bool im2col = request.kind != Request::Kind::tiled;
    if (!request.dim || !request.step || (!request.stride && request.rank > 1)) return false;
    if (request.rank < (im2col ? 3u : 1u) || request.rank > max_tensor_rank) return false;
    if (!type_of(request.type, later_gpus, fields.type) || !set_swizzle(request.swizzle, later_gpus, fields))
        return false;
    if (request.interleave > 2 || request.promotion > 3 || request.fill > 1) return false;
    fields.rank = request.rank;
    fields.im2col = im2col;
    fields.interleave = static_cast<Interleave>(request.interleave);
    fields.promotion = request.promotion;
    fields.fill_nan = request.fill != 0;
    fields.address = request.address;
    if (fields.interleave != Interleave::none && fields.rank < 3) return false;
    if (fields.fill_nan && !is_floating(fields.type)) return false;
    const bool padded = is_padded(fields.type);
    const std::uint64_t unit = fields.interleave == Interleave::bytes_32 || padded ? 32 : 16;
    // Pointers of 56 and more bits are none of a GPU's.
    if (fields.address % unit != 0 || fields.address >> 56 != 0) return false;
    for (unsigned i = 0; i < fields.rank; ++i) {
        fields.dim[i] = request.dim[i];
        fields.step[i] = request.step[i];
        if (fields.dim[i] == 0 || fields.dim[i] > std::uint64_t{1} << 32 || fields.step[i] == 0 || fields.step[i] > 8)
            return false;
        if (i + 1 == fields.rank) break;
        fields.stride[i] = request.stride[i];
        if (fields.stride[i] % unit != 0 || fields.stride[i] >> 40 != 0) return false;
    }
    return check_packed(fields);
}

/// The run of elements that a copy takes along dimension 0, in the shared memory's layout.
bool check_inner(const TensorMapFields& fields, std::uint32_t elements) {
    if (is_padded(fields.type)) return elements == 128; // which is 128 bytes of shared memory
    const std::uint32_t bytes = elements * tensor_element_bits(fields.type) / 8;
    if (bytes == 0 || bytes % 16 != 0) return false;
    return fields.swizzle == Swizzle::none || fields.interleave != Interleave::none ||
           bytes <= span_bytes(fields.swizzle);
}

/// A tile must fit into the largest shared memory of a block.
bool fits_shared(const TensorMapFields& fields, std::uint64_t elements) {
    constexpr std::uint64_t most_shared = 227 * 1024;
    return elements * (is_padded(fields.type) ? 8 : tensor_element_bits(fields.type)) / 8 <= most_shared;
}

bool set_box(const Request& request, TensorMapFields& fields) {
    if (!request.box) return false;
    std::uint64_t elements = 1;
    for (unsigned i = 0; i < fields.rank; ++i) {
        fields.box[i] = request.box[i];
        if (fields.box[i] == 0 || fields.box[i] > 256) return false;
        elements *= fields.box[i];
    }
    return check_inner(fields, fields.box[0]) && fits_shared(fields, elements);
}

bool set_columns(const Request& request, TensorMapFields& fields) {
    const bool wide = request.kind == Request::Kind::im2col_wide;
    if (!request.lower || !request.upper || request.channels == 0 || request.channels > 256 || request.pixels == 0 ||
        request.pixels > 1024)
        return false;
    fields.channels = request.channels;
    fields.pixels = request.pixels;
    const int limit = fields.rank == 3 ? 1 << 15 : fields.rank == 4 ? 1 << 7 : 1 << 4;
    for (unsigned i = 0; i < (wide ? 1 : fields.rank - 2); ++i) {
        fields.lower[i] = request.lower[i];
        fields.upper[i] = request.upper[i];
        if (fields.lower[i] < -limit || fields.lower[i] >= limit || fields.upper[i] < -limit ||
            fields.upper[i] >= limit)
            return false;
        // The box must hold a pixel. The driver takes 32 bits of the size, and of interleaved
        // tensors the size of the dimension before.
        const unsigned dimension = fields.interleave == Interleave::none ? 1 + i : i;
        const std::int64_t size = static_cast<std::uint32_t>(fields.dim[dimension]);
        if (size + fields.upper[i] - fields.lower[i] <= 0) return false;
    }
    if (wide && (request.mode > 1 || fields.interleave != Interleave::none || fields.swizzle < Swizzle::span_64 ||
                 fields.atom > SwizzleAtom::bytes_32))
        return false;
    return check_inner(fields, fields.channels) && fits_shared(fields, std::uint64_t{fields.channels} * fields.pixels);
}

} // namespace

Status make_tensor_map(const TensorMapRequest& request, unsigned cc_major, TensorMap& map) {
    TensorMapFields fields;
    if (!set_tensor(request, cc_major >= 10, fields)) return Status::invalid_value;
    if (request.kind == Request::Kind::tiled ? !set_box(request, fields) : !set_columns(request, fields))
        return Status::invalid_value;
    encode(fields, map);
    return Status::success;
}

} // namespace ptarmigan::runtime
