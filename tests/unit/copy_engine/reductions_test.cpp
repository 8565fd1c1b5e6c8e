// SPDX-License-Identifier: Apache-2.0
// Reductions by generated code against the portable ones: all bit patterns that matter, lengths and
// places that are no multiples of 16 bytes, swizzled tiles, and several threads at one target.
#include "runtime/copy_engine/reduction_code.h"
#include "runtime/copy_engine/row_code.h"
#include "runtime/copy_engine/tensor_copy.h"
#include "tests/recordings/random.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

using namespace ptarmigan::runtime;
using recordings::Random;

namespace {

constexpr BulkReduction operations[] = {
    BulkReduction::add, BulkReduction::min,     BulkReduction::max,    BulkReduction::inc,
    BulkReduction::dec, BulkReduction::bit_and, BulkReduction::bit_or, BulkReduction::bit_xor};

/// Random bits, and often infinities, NaNs, zeros, subnormals and the largest values, in elements
/// of 16 or 32 bits.
void fill(Random& random, std::uint8_t* place, std::size_t bytes) {
    constexpr std::uint16_t halves[] = {0,      0x8000, 1,      0x8001, 0x7c00, 0xfc00, 0x7fff,
                                        0x7f80, 0xff80, 0x7bff, 0xfbff, 0x0080, 0x7f7f, 0x0400};
    for (std::size_t i = 0; i < bytes; i += 2) {
        const std::uint16_t bits = random.below(3) == 0 ? halves[random.below(std::size(halves))]
                                                        : static_cast<std::uint16_t>(random.bits());
        std::memcpy(place + i, &bits, 2);
    }
}

template <class T> T element(const std::uint8_t* place, std::size_t index) {
    T value;
    std::memcpy(&value, place + index * sizeof value, sizeof value);
    return value;
}

} // namespace

TEST_CASE("copy engine: generated reductions are the portable ones") {
    alignas(64) std::uint8_t source[1024 + 64], target[1024 + 64], expected[1024 + 64];
    Random random(20261123);
    unsigned generated = 0;
    for (const BulkReduction operation : operations)
        for (unsigned number = 0; number < 13; ++number) {
            const auto type = static_cast<TensorType>(number);
            const ReduceRun code = reduce_run_generated(operation, type),
                            portable = reduce_run_portably(operation, type);
            if (!code) {
                CHECK((!portable || row_vectors() == RowVectors::none)); // what can be done is done by code
                continue;
            }
            REQUIRE(portable);
            ++generated;
            const std::size_t size = tensor_element_bytes(type);
            for (unsigned i = 0; i < 600; ++i) {
                const std::size_t count = random.below(static_cast<unsigned>(1024 / size) + 1),
                                  to = i % 4 == 0 ? size * random.below(8) : 16 * random.below(3),
                                  from = size * random.below(8);
                fill(random, source, sizeof source);
                fill(random, target, sizeof target);
                std::memcpy(expected, target, sizeof target);
                code(target + to, source + from, count);
                portable(expected + to, source + from, count);
                INFO("operation " << static_cast<int>(operation) << " type " << number << " count "
                                  << count << " to " << to);
                REQUIRE(std::memcmp(target, expected, sizeof target) == 0);
            }
        }
    CHECK(generated == (row_vectors() == RowVectors::none ? 0u : 33u));
}

TEST_CASE("copy engine: generated sums, minima and maxima of halves, all patterns") {
    // Each f16 and each bf16 with sixteen others, added and compared.
    std::vector<std::uint16_t> source(65536), target(65536), expected(65536);
    for (unsigned kind = 0; kind < 6; ++kind) {
        const TensorType type = kind % 2 ? TensorType::bf16 : TensorType::f16;
        const ReduceRun code = reduce_run(operations[kind / 2], type),
                        portable = reduce_run_portably(operations[kind / 2], type);
        for (unsigned other = 0; other < 16; ++other) {
            for (unsigned i = 0; i < 65536; ++i) {
                source[i] = static_cast<std::uint16_t>(i);
                target[i] = expected[i] = static_cast<std::uint16_t>(i * 40503u * other + other);
            }
            code(reinterpret_cast<std::uint8_t*>(target.data()),
                 reinterpret_cast<const std::uint8_t*>(source.data()), 65536);
            portable(reinterpret_cast<std::uint8_t*>(expected.data()),
                     reinterpret_cast<const std::uint8_t*>(source.data()), 65536);
            REQUIRE(target == expected);
        }
    }
}

TEST_CASE("copy engine: tiles are reduced the same by generated code") {
    alignas(4096) static std::uint8_t tensor[1 << 16], expected[1 << 16], tile[1 << 14];
    Random random(20261124);
    unsigned samples = 0;
    while (samples < 2000) {
        TensorMapFields map;
        constexpr TensorType types[] = {TensorType::f32, TensorType::f16, TensorType::bf16,
                                        TensorType::u32};
        map.type = types[random.below(4)];
        const unsigned size = tensor_element_bytes(map.type);
        map.rank = 2;
        map.swizzle = static_cast<Swizzle>(random.below(4));
        if (map.swizzle == Swizzle::span_128) map.atom = static_cast<SwizzleAtom>(random.below(4));
        const unsigned span = map.swizzle == Swizzle::none ? 256 : span_bytes(map.swizzle);
        map.box = {16 / size * (1 + random.below(span / 16)), 1 + random.below(40)};
        map.dim = {1 + random.below(200 / size), 1 + random.below(50)};
        map.stride = {256};
        map.step.fill(1);
        map.address = reinterpret_cast<std::uint64_t>(tensor);
        TensorPosition position;
        position.at[0] =
            static_cast<std::int32_t>(16 / size * random.below(static_cast<unsigned>(map.dim[0])));
        position.at[1] = static_cast<std::int32_t>(random.below(50));
        TensorTile shape;
        if (describe_tile(map, TensorMode::tile, 2, shape)) continue;
        ++samples;
        fill(random, tensor, sizeof tensor);
        fill(random, tile, sizeof tile);
        std::memcpy(expected, tensor, sizeof tensor);
        reduce_tile(shape, position, tile, reduce_run_portably(BulkReduction::add, map.type));
        std::swap_ranges(tensor, tensor + sizeof tensor, expected);
        reduce_tile(shape, position, tile, reduce_run(BulkReduction::add, map.type));
        REQUIRE(std::memcmp(tensor, expected, sizeof tensor) == 0);
    }
}

TEST_CASE("copy engine: no reduction is lost when threads reduce into one target") {
    // Generated, portable, and in another alignment: they have to hold against each other.
    constexpr unsigned rounds = 20000, count = 16;
    alignas(64) static float target[count];
    std::fill_n(target, count, 0.0f);
    float ones[count];
    std::fill_n(ones, count, 1.0f);
    auto* place = reinterpret_cast<std::uint8_t*>(target);
    const auto* by = reinterpret_cast<const std::uint8_t*>(ones);
    const auto reduce = [&](ReduceRun run, unsigned first) {
        for (unsigned i = 0; i < rounds; ++i) run(place + 4 * first, by, count - first);
    };
    std::thread one(reduce, reduce_run(BulkReduction::add, TensorType::f32), 0),
        two(reduce, reduce_run(BulkReduction::add, TensorType::f32), 0),
        three(reduce, reduce_run_portably(BulkReduction::add, TensorType::f32), 1);
    one.join();
    two.join();
    three.join();
    CHECK(element<float>(place, 0) == 2.0f * rounds);
    for (unsigned i = 1; i < count; ++i) CHECK(element<float>(place, i) == 3.0f * rounds);
}
