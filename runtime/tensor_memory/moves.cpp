// SPDX-License-Identifier: Apache-2.0
// tcgen05.ld, .st, .cp and .shift (manual 9.7.16.2.3, 9.7.16.8, 9.7.16.9). Where the manual shows a layout in a figure
// only, it is that of CUTLASS' copy traits.
#include "runtime/tensor_memory/shared_matrix.h"
#include "runtime/tensor_memory/tensor_memories.h"

#include <algorithm>
#include <cstring>

namespace ptarmigan::runtime {

using abi::TensorMemoryCall;
using Copy = abi::TensorMemoryCopy;
using Reduction = abi::TensorMemoryReduction;
using Shape = abi::TensorMemoryShape;

namespace {

constexpr unsigned warp_lanes = 32;
constexpr const char* not_allocated = "tensor memory that is not allocated";

/// A word that a lane of a warp moves: its lane in tensor memory from the address' one on, and its column; `second`:
/// from the second address of lanes_16x32bx2 on.
struct Word {
    unsigned lane, column;
    bool second = false;
};

Word word_of(Shape shape, unsigned lane, unsigned index) {
    const unsigned g = lane / 4, t = lane % 4;
    switch (shape) {
    case Shape::lanes_32x32b: return {lane, index};
    case Shape::lanes_16x64b: return {g + lane % 2 * 8, lane / 2 % 2 + 2 * index};
    case Shape::lanes_16x128b: return {g + index % 2 * 8, t + index / 2 * 4};
    case Shape::lanes_16x256b: return {g + index / 2 % 2 * 8, 2 * t + index % 2 + index / 4 * 8};
    case Shape::lanes_16x32bx2: return {lane % 16, index, lane >= 16};
    }
    return {};
}

/// Columns of 32 bits from an address on that a load or store of so many registers takes.
unsigned columns_of(Shape shape, unsigned registers) {
    switch (shape) {
    case Shape::lanes_16x64b: return 2 * registers;
    case Shape::lanes_16x128b: return 2 * registers;
    case Shape::lanes_16x256b: return 2 * registers;
    default: return registers;
    }
}

std::uint32_t reduce(const TensorMemoryCall& call, const std::uint32_t* words, unsigned count) {
    const auto reduction = static_cast<Reduction>(call.reduction);
    const auto at = [&](unsigned i) { return words[std::size_t{i} * warp_lanes]; };
    std::uint32_t result = at(0);
    if (reduction < Reduction::min_f) {
        for (unsigned i = 1; i < count; ++i) {
            const std::uint32_t word = at(i);
            switch (reduction) {
            case Reduction::min_u: result = std::min(result, word); break;
            case Reduction::max_u: result = std::max(result, word); break;
            case Reduction::min_s:
                result = static_cast<std::uint32_t>(
                    std::min(static_cast<std::int32_t>(result), static_cast<std::int32_t>(word)));
                break;
            default:
                result = static_cast<std::uint32_t>(
                    std::max(static_cast<std::int32_t>(result), static_cast<std::int32_t>(word)));
            }
        }
        return result;
    }
    // As min and max of f32: numbers before NaN unless .NaN, -0 below +0.
    constexpr std::uint32_t sign = 0x80000000, infinity = 0x7f800000, canonical_nan = 0x7fffffff;
    const auto key = [](std::uint32_t bits) { return bits & sign ? ~bits : bits | sign; };
    bool any_nan = false, any_number = false;
    for (unsigned i = 0; i < count; ++i) {
        std::uint32_t word = at(i);
        if ((call.flags & TensorMemoryCall::absolute) != 0) word &= ~sign;
        if ((word & ~sign) > infinity) {
            any_nan = true;
            continue;
        }
        const bool better = reduction == Reduction::max_f ? key(word) > key(result) : key(word) < key(result);
        if (!any_number || better) result = word;
        any_number = true;
    }
    const bool is_nan = !any_number || (any_nan && (call.flags & TensorMemoryCall::keeps_nan) != 0);
    return is_nan ? canonical_nan : result;
}

/// 16 elements of 4 or 6 bits to a byte each.
void unpack(unsigned bits, const std::uint8_t* from, std::uint8_t* to) {
    for (unsigned i = 0; i < 16; ++i) {
        const unsigned bit = i * bits;
        const unsigned pair = from[bit / 8] | unsigned{from[bit / 8 + 1]} << 8;
        const unsigned value = pair >> bit % 8 & ((1u << bits) - 1);
        to[i] = static_cast<std::uint8_t>(bits == 4 ? value << 2 : value); // e2m1 is in the middle of its byte
    }
}

struct CopyShape {
    unsigned rows, bytes;
    std::array<int, 4> shifts; ///< of the lanes of copies; -1: there is none
};

CopyShape copy_shape(Copy copy) {
    switch (copy) {
    case Copy::rows_128x256b: return {128, 32, {0, -1, -1, -1}};
    case Copy::rows_128x128b: return {128, 16, {0, -1, -1, -1}};
    case Copy::rows_4x256b: return {4, 32, {0, -1, -1, -1}};
    case Copy::rows_64x128b_02_13: return {64, 16, {0, 64, -1, -1}};
    case Copy::rows_64x128b_01_23: return {64, 16, {0, 32, -1, -1}};
    case Copy::rows_32x128b: return {32, 16, {0, 32, 64, 96}};
    }
    return {};
}

/// The lane that a row goes to, from the address' one on.
unsigned lane_of_row(Copy copy, unsigned row) {
    if (copy == Copy::rows_4x256b) return 32 * row; // one in each subpartition
    if (copy == Copy::rows_64x128b_01_23) return row / 32 * 64 + row % 32;
    return row;
}

} // namespace

void TensorMemories::move_registers(const Origin& first, std::uint32_t lane_width, const TensorMemoryCall& call) {
    const auto shape = static_cast<Shape>(call.detail);
    const bool is_load = static_cast<abi::TensorMemoryOperation>(call.operation) == abi::TensorMemoryOperation::load;
    const bool packed = (call.flags & TensorMemoryCall::packed) != 0;
    TensorMemory& memory = own_memory(first);
    for (std::uint64_t lanes = call.active; lanes != 0; lanes &= lanes - 1) {
        const auto lane = static_cast<unsigned>(__builtin_ctzll(lanes));
        const Origin origin{first.cta, first.step, lane, first.line};
        const unsigned thread = first.step * lane_width + lane, warp = thread / warp_lanes;
        const std::uint32_t bits = call.d[lane];
        const unsigned columns = columns_of(shape, call.registers) * (packed ? 2 : 1);
        const bool is_split = shape == Shape::lanes_16x32bx2;
        const auto check = [&](std::uint32_t address_bits) {
            const TensorMemoryAddress address(address_bits);
            if (!memory.holds(address.column, columns)) fail(origin, abi::Fault::illegal_address, not_allocated);
            const bool halves = shape != Shape::lanes_32x32b;
            if (address.lane / warp_lanes != warp % 4 || address.lane % (halves ? 16 : 32) != 0)
                fail_rule(
                    origin,
                    "a warp loads and stores the 32 lanes of tensor memory that are its own, from an aligned one on");
            return address;
        };
        const TensorMemoryAddress address = check(bits);
        const TensorMemoryAddress second = is_split ? check(bits + call.split) : address;
        for (unsigned i = 0; i < call.registers; ++i) {
            const Word word = word_of(shape, thread % warp_lanes, i);
            const TensorMemoryAddress& from = word.second ? second : address;
            std::uint32_t& data = call.data[std::size_t{i} * warp_lanes + lane];
            const unsigned at = from.lane + word.lane;
            if (packed) { // the halves of a register are in two columns
                std::uint32_t &low = memory.word(at, from.column + 2 * word.column),
                              &high = memory.word(at, from.column + 2 * word.column + 1);
                if (is_load) {
                    data = (low & 0xffff) | high << 16;
                } else {
                    low = data & 0xffff;
                    high = data >> 16;
                }
            } else if (is_load) {
                data = memory.word(at, from.column + word.column);
            } else {
                memory.word(at, from.column + word.column) = data;
            }
        }
        if (call.reduction != 0)
            call.data[std::size_t{call.registers} * warp_lanes + lane] = reduce(call, call.data + lane, call.registers);
    }
}

void TensorMemories::copy(const Operation& operation) {
    const auto kind = static_cast<Copy>(operation.detail);
    const CopyShape shape = copy_shape(kind);
    const SharedMatrix matrix(operation.product.b);
    if (const char* rule = matrix.fault(0)) fail_rule(operation.origin, rule);
    const TensorMemoryAddress address(operation.product.d);
    const ProductCtas ctas = product_ctas(operation.origin, operation.flags);
    for (const ProductCta& cta : ctas.span()) {
        if (!cta.memory->holds(address.column, shape.bytes / 4))
            fail(operation.origin, abi::Fault::illegal_address, not_allocated);
        for (unsigned row = 0; row < shape.rows; ++row) {
            std::uint8_t bytes[32];
            for (unsigned i = 0; i < shape.bytes; i += 16) {
                const std::uint32_t place = matrix.place(row, i);
                if (place > cta.shared.size() || cta.shared.size() - place < 16)
                    fail(operation.origin, abi::Fault::illegal_address,
                         "a matrix descriptor leaves the block's shared memory");
                if (operation.unpacks != 0)
                    unpack(operation.unpacks, cta.shared.data() + place, bytes + i);
                else
                    std::memcpy(bytes + i, cta.shared.data() + place, 16);
            }
            for (const int shift : shape.shifts) {
                if (shift < 0) continue;
                const unsigned lane = address.lane + lane_of_row(kind, row) + static_cast<unsigned>(shift);
                if (lane >= TensorMemory::lanes)
                    fail(operation.origin, abi::Fault::illegal_address, "a copy leaves the lanes of tensor memory");
                for (unsigned i = 0; i < shape.bytes / 4; ++i)
                    std::memcpy(&cta.memory->word(lane, address.column + i), bytes + 4 * i, 4);
            }
        }
    }
}

/// Each of 31 lanes gets what the next one has in 32 bytes; the last one keeps it, until tcgen05.cp.4x256b brings new
/// ones.
void TensorMemories::shift(const Operation& operation) {
    constexpr unsigned columns = 8;
    const TensorMemoryAddress address(operation.product.d);
    if (address.lane % warp_lanes != 0 || address.lane >= TensorMemory::lanes)
        fail_rule(operation.origin, "the lane of a matrix to shift is no multiple of 32");
    const ProductCtas ctas = product_ctas(operation.origin, operation.flags);
    for (const ProductCta& cta : ctas.span()) {
        if (!cta.memory->holds(address.column, columns))
            fail(operation.origin, abi::Fault::illegal_address, not_allocated);
        for (unsigned i = 0; i < columns; ++i) {
            std::uint32_t* column = cta.memory->column(address.column + i) + address.lane;
            std::copy(column + 1, column + warp_lanes, column);
        }
    }
}

} // namespace ptarmigan::runtime
