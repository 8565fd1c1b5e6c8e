// SPDX-License-Identifier: Apache-2.0
#include "runtime/exec/multimem.h"

#include "runtime/base/processor.h"
#include "runtime/code/fault.h"
#include "runtime/copy_engine/reduction.h"
#include "runtime/memory/multicast.h"
#include "runtime/tensor_core/number.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace ptarmigan::runtime {
namespace {

using abi::MultimemCall;
using abi::MultimemOperation;
using abi::MultimemType;
using Bytes = std::array<std::uint8_t, 16>;

std::size_t element_bytes(MultimemType type) {
    switch (type) {
    case MultimemType::e4m3:
    case MultimemType::e5m2: return 1;
    case MultimemType::f16:
    case MultimemType::bf16: return 2;
    case MultimemType::u64:
    case MultimemType::s64:
    case MultimemType::f64: return 8;
    default: return 4;
    }
}

/// The type that the copy engine reduces, whose elements these are: a NaN, a zero's sign and a subnormal number come
/// out as there.
TensorType reduced_type(MultimemType type) {
    switch (type) {
    case MultimemType::s32: return TensorType::s32;
    case MultimemType::u64: return TensorType::u64;
    case MultimemType::s64: return TensorType::s64;
    case MultimemType::f16: return TensorType::f16;
    case MultimemType::bf16: return TensorType::bf16;
    case MultimemType::f32: return TensorType::f32;
    case MultimemType::f64: return TensorType::f64;
    default: return TensorType::u32;
    }
}

float half(std::uint16_t bits) {
    return static_cast<float>(std::bit_cast<float16>(bits));
}

/// Of the formats of 8 and 16 bits.
float widen(MultimemType type, std::uint32_t bits) {
    using tensor_core::Format;
    if (type == MultimemType::f16) return half(static_cast<std::uint16_t>(bits));
    if (type == MultimemType::bf16) return std::bit_cast<float>(bits << 16);
    const Format format = type == MultimemType::e4m3 ? Format::e4m3 : Format::e5m2;
    const tensor_core::Number number = tensor_core::unpack(format, bits);
    if (number.nan) return std::nanf("");
    if (number.infinite) return number.negative ? -HUGE_VALF : HUGE_VALF;
    const float size = std::ldexp(static_cast<float>(number.significand),
                                  number.exponent - tensor_core::layout_of(format).fraction_bits);
    return number.negative ? -size : size;
}

/// To nearest even; of 8 bits as conversions to them are, which never give infinities.
std::uint32_t narrow(MultimemType type, float value) {
    if (std::isnan(value)) return type == MultimemType::f16 || type == MultimemType::bf16 ? 0x7fff : 0x7f;
    if (type == MultimemType::f16) return std::bit_cast<std::uint16_t>(static_cast<float16>(value));
    if (type == MultimemType::bf16) {
        const auto bits = std::bit_cast<std::uint32_t>(value);
        return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    }
    const std::uint32_t most = type == MultimemType::e4m3 ? 0x7e : 0x7b, sign = std::signbit(value) ? 0x80 : 0;
    const float size = std::abs(value);
    // Codes of positive numbers are in their order.
    std::uint32_t low = 0;
    while (low < most && widen(type, low + 1) <= size) ++low;
    if (low == most) return sign | most;
    const float below = size - widen(type, low), above = widen(type, low + 1) - size;
    const bool up = above < below || (above == below && (low & 1) != 0);
    return sign | (low + (up ? 1 : 0));
}

float choose(abi::BulkReduction operation, float one, float other) {
    if (operation == abi::BulkReduction::min) return std::fmin(one, other);
    if (operation == abi::BulkReduction::max) return std::fmax(one, other);
    return one + other;
}

/// Elements of formats that the copy engine does not reduce, or whose sums are kept in more bits.
Bytes reduce_in_float(const MultimemCall& call, const std::array<Bytes, Device::most>& values, unsigned count) {
    const auto type = static_cast<MultimemType>(call.type);
    const auto operation = static_cast<abi::BulkReduction>(call.reduction);
    const std::size_t size = element_bytes(type);
    Bytes result{};
    for (std::size_t at = 0; at < call.bytes; at += size) {
        float all = 0;
        for (unsigned i = 0; i < count; ++i) {
            std::uint32_t bits = 0;
            std::memcpy(&bits, values[i].data() + at, size);
            const float value = widen(type, bits);
            all = i == 0 ? value : choose(operation, all, value);
            // How much of a sum is kept: a half of small formats with .acc::f16, a float of halves with .acc::f32.
            if (!call.wider)
                all = widen(type, narrow(type, all));
            else if (size == 1)
                all = half(std::bit_cast<std::uint16_t>(static_cast<float16>(all)));
        }
        const std::uint32_t bits = narrow(type, all);
        std::memcpy(result.data() + at, &bits, size);
    }
    return result;
}

/// One access of a whole element, as others see it.
template <class Word> void load_words(Bytes& into, const std::uint8_t* from, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += sizeof(Word)) {
        const Word word = __atomic_load_n(reinterpret_cast<const Word*>(from + at), __ATOMIC_ACQUIRE);
        std::memcpy(into.data() + at, &word, sizeof word);
    }
}
template <class Word> void store_words(std::uint8_t* to, const Bytes& from, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += sizeof(Word)) {
        Word word;
        std::memcpy(&word, from.data() + at, sizeof word);
        __atomic_store_n(reinterpret_cast<Word*>(to + at), word, __ATOMIC_RELEASE);
    }
}

Bytes load_reduced(const MultimemCall& call, const MulticastPlaces& places) {
    const auto type = static_cast<MultimemType>(call.type);
    const std::size_t size = element_bytes(type);
    std::array<Bytes, Device::most> values{};
    for (unsigned i = 0; i < places.count; ++i)
        if (call.bytes % 8 == 0)
            load_words<std::uint64_t>(values[i], places.at[i], call.bytes);
        else
            load_words<std::uint32_t>(values[i], places.at[i], call.bytes);
    if (call.wider || size == 1) return reduce_in_float(call, values, places.count);
    const ReduceRun reduce = reduce_run_portably(static_cast<abi::BulkReduction>(call.reduction), reduced_type(type));
    alignas(16) Bytes result = values[0];
    for (unsigned i = 1; i < places.count; ++i) reduce(result.data(), values[i].data(), call.bytes / size);
    return result;
}

void act(const MultimemCall& call, const MulticastPlaces& places, const Bytes& data) {
    const auto type = static_cast<MultimemType>(call.type);
    alignas(16) const Bytes operand = data;
    for (unsigned i = 0; i < places.count; ++i) {
        if (static_cast<MultimemOperation>(call.operation) == MultimemOperation::reduce)
            reduce_run_portably(static_cast<abi::BulkReduction>(call.reduction),
                                reduced_type(type))(places.at[i], operand.data(), call.bytes / element_bytes(type));
        else if (call.bytes % 8 == 0)
            store_words<std::uint64_t>(places.at[i], operand, call.bytes);
        else
            store_words<std::uint32_t>(places.at[i], operand, call.bytes);
    }
}

[[noreturn]] void fail(abi::CtaContext& cta, std::uint32_t step, unsigned lane, const MultimemCall& call) {
    FaultRecord record;
    record.fault = abi::Fault::illegal_address;
    record.cta = &cta;
    record.step = step;
    record.lanes = std::uint64_t{1} << lane;
    record.line = call.line;
    record.address = call.address[lane];
    record.has_address = true;
    record.rule = "no multicast memory, or some device has none bound there";
    raise_fault(record);
    __builtin_unreachable();
}

} // namespace

void run_multimem(abi::CtaContext& cta, std::uint32_t step, abi::MultimemCall& call) {
    const unsigned words = std::min(call.bytes / 4, 4u);
    for (std::uint64_t lanes = call.active; lanes != 0; lanes &= lanes - 1) {
        const auto lane = static_cast<unsigned>(__builtin_ctzll(lanes));
        MulticastPlaces places;
        if (!MulticastMaps::get().find(call.address[lane], call.bytes, places)) fail(cta, step, lane, call);
        Bytes data{};
        if (static_cast<MultimemOperation>(call.operation) == MultimemOperation::load_reduce) {
            data = load_reduced(call, places);
            for (unsigned word = 0; word < words; ++word)
                std::memcpy(&call.data[word][lane], data.data() + 4 * word, 4);
            continue;
        }
        for (unsigned word = 0; word < words; ++word) std::memcpy(data.data() + 4 * word, &call.data[word][lane], 4);
        act(call, places, data);
    }
}

} // namespace ptarmigan::runtime
