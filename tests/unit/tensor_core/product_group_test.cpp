// SPDX-License-Identifier: Apache-2.0
// Groups of products against the same products one after the other by the portable code.
#include "runtime/tensor_core/product_group.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace {

using namespace ptarmigan::runtime::tensor_core;
namespace abi = ptarmigan::abi;
using enum Format;

constexpr MatrixProduct forms[] = {
    {f16, f16, f32, f32, Unit::fused, 16, 8, 16},        {f16, f16, f16, f16, Unit::fused, 16, 8, 16},
    {f16, f16, f32, f32, Unit::fused, 16, 8, 8},         {bf16, bf16, f32, f32, Unit::fused, 16, 8, 16},
    {bf16, bf16, f32, f32, Unit::fused, 32, 8, 16},      {tf32, tf32, f32, f32, Unit::fused, 16, 8, 8},
    {tf32, tf32, f32, f32, Unit::fused, 16, 8, 4},       {tf32, tf32, f32, f32, Unit::two_fused, 16, 16, 8},
    {f16, f16, f32, f32, Unit::fused, 16, 16, 16},       {f16, f16, f16, f16, Unit::fused, 8, 32, 16},
    {e4m3, e5m2, f32, f32, Unit::fp8_by_f16, 16, 8, 32}, {e4m3, e4m3, f16, f16, Unit::fp8_by_f16, 16, 8, 32},
    {e5m2, e4m3, f32, f32, Unit::fp8_by_f16, 16, 8, 16}, {s8, s8, s32, s32, Unit::integer, 16, 8, 32},
    {u8, s8, s32, s32, Unit::integer, 16, 8, 16},        {s8, u8, s32, s32, Unit::integer, 8, 8, 16},
    {s4, u4, s32, s32, Unit::integer, 16, 8, 64},        {u8, u8, s32, s32, Unit::integer, 16, 16, 16},
    {bf16, bf16, f32, f32, Unit::fused, 16, 16, 16},     {tf32, tf32, f32, f32, Unit::fused, 16, 16, 8},
    {e4m3, e5m2, f32, f32, Unit::fp8_by_f16, 16, 16, 32}, {s8, s8, s32, s32, Unit::integer, 16, 16, 32},
    {u8, s8, s32, s32, Unit::integer, 16, 16, 16},       {f16, f16, f16, f16, Unit::fused, 16, 16, 16},
    {f64, f64, f64, f64, Unit::chain_f64, 16, 8, 8},     {b1, b1, s32, s32, Unit::bits_xor, 16, 8, 256},
};

enum class Kind { bits, near_one };

/// A matrix of random bits, or of numbers that lie near each other, by the bytes of its elements.
void fill(Format format, Kind kind, std::vector<std::uint64_t>& words, std::size_t bytes, std::mt19937& random) {
    words.assign(bytes / 8 + 1, 0);
    auto* to = reinterpret_cast<std::uint8_t*>(words.data());
    const bool is_small_float = format == e4m3 || format == e5m2;
    for (std::size_t i = 0; i < bytes; i += 4) {
        std::uint32_t word = static_cast<std::uint32_t>(random());
        if (kind != Kind::bits) {
            const float value = std::ldexp(1.0f + static_cast<float>(random() % 1024) / 1024, -static_cast<int>(random() % 8));
            if (format == f32 || format == tf32) {
                std::memcpy(&word, &value, 4);
                word |= random() % 2 << 31;
            } else if (format == bf16) {
                word = (word & 0x807f807f) | 0x3f003f00 | random() % 2 << 7 | random() % 2 << 24;
            } else if (format == f16) {
                word = (word & 0x83ff83ff) | 0x38003800 | random() % 2 << 10 | random() % 2 << 27;
            } else if (is_small_float) {
                word = (word & 0x87878787) | 0x30303030;
            }
        }
        std::memcpy(to + i, &word, bytes - i < 4 ? bytes - i : 4);
    }
}

struct Group {
    std::vector<std::uint64_t> a, b, accumulators;
    std::vector<abi::MatrixStep> steps;
    std::vector<abi::MatrixChain> chains;
    ProductGroup group{};

    Group(const MatrixProduct& product, Kind kind, std::mt19937& random) {
        group.a_count = 1 + random() % 4;
        group.b_count = 1 + random() % 5;
        const unsigned count = 1 + random() % 8;
        fill(product.a, kind, a, bytes_of_a(product) * group.a_count, random);
        fill(product.b, kind, b, bytes_of_b(product) * group.b_count, random);
        fill(product.c, kind, accumulators, bytes_of_accumulator(product) * count, random);
        for (unsigned i = 0; i < count; ++i) {
            const auto steps_of_chain = static_cast<std::uint16_t>(1 + random() % 4);
            chains.push_back({static_cast<std::uint16_t>(steps.size()), steps_of_chain, static_cast<std::uint8_t>(random() % count),
                              static_cast<std::uint8_t>(i)});
            for (unsigned j = 0; j < steps_of_chain; ++j)
                steps.push_back({static_cast<std::uint8_t>(random() % group.a_count), static_cast<std::uint8_t>(random() % group.b_count)});
        }
        group.a = a.data();
        group.b = b.data();
        group.steps = steps.data();
        group.chains = chains.data();
        group.chain_count = count;
    }
    ProductGroup on(std::vector<std::uint64_t>& results) const {
        ProductGroup copy = group;
        copy.accumulators = results.data();
        return copy;
    }
};

std::vector<Code> vector_codes() {
    std::vector<Code> codes;
    for (const Code code : {Code::avx2, Code::avx512, Code::amx})
        if (can_run(code)) codes.push_back(code);
    return codes;
}

} // namespace

TEST_CASE("tensor core: groups have the bits of their products one after the other") {
    std::mt19937 random(1);
    for (const MatrixProduct& form : forms)
        for (const bool saturate : {false, true})
            for (const Kind kind : {Kind::bits, Kind::near_one, Kind::near_one, Kind::near_one}) {
                MatrixProduct product = form;
                if (saturate && product.unit != Unit::integer) continue;
                product.saturate = saturate;
                const Group group(product, kind, random);
                auto expected = group.accumulators;
                multiply_one_by_one(multiply_portably, product, group.on(expected));
                for (const Code code : vector_codes()) {
                    auto results = group.accumulators;
                    INFO("form " << &form - forms << " code " << static_cast<int>(code) << " kind " << static_cast<int>(kind));
                    if (const MultiplyGroup multiply = group_multiplier(code, product, Accuracy::exact))
                        multiply(product, group.on(results));
                    else
                        multiply_one_by_one(multiplier(code, product), product, group.on(results));
                    const bool same = results == expected;
                    CHECK(same);
                }
            }
}

TEST_CASE("tensor core: fast groups are close to exact ones") {
    std::mt19937 random(2);
    for (const MatrixProduct& product : forms) {
        if (product.d != f32) continue;
        const Group group(product, Kind::near_one, random);
        auto exact = group.accumulators;
        multiply_one_by_one(multiply_portably, product, group.on(exact));
        for (const Code code : vector_codes()) {
            auto fast = group.accumulators;
            const MultiplyGroup multiply = group_multiplier(code, product, Accuracy::fast);
            REQUIRE(multiply);
            multiply(product, group.on(fast));
            const std::size_t count = bytes_of_accumulator(product) * group.chains.size() / 4;
            float most = 0;
            for (std::size_t i = 0; i < count; ++i) {
                float x, y;
                std::memcpy(&x, reinterpret_cast<const char*>(exact.data()) + 4 * i, 4);
                std::memcpy(&y, reinterpret_cast<const char*>(fast.data()) + 4 * i, 4);
                most = std::max(most, std::abs(x - y));
            }
            INFO("form " << &product - forms);
            CHECK(most < 2e-3f);
        }
    }
}
