// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_core/product_group.h"

#include "runtime/base/per_thread.h"
#include "runtime/tensor_core/vector_code.h"

#include <array>
#include <memory>
#include <new>

namespace ptarmigan::runtime::tensor_core {
namespace {

struct Freed {
    void operator()(std::uint8_t* memory) const { ::operator delete[](memory, std::align_val_t{64}); }
};
struct Memory {
    std::unique_ptr<std::uint8_t[], Freed> bytes;
    std::size_t size = 0;
};

/// Tiles, but a product by itself is made sooner by vectors than tiles are set up.
void multiply_by_tiles(const MatrixProduct& product, const ProductGroup& group) {
    const bool is_single = group.chain_count == 1 && group.chains[0].count == 1;
    const Code code = is_single ? best_code() : Code::amx;
    if (const MultiplyGroup multiply = group_multiplier(code, product, wanted_accuracy()))
        return multiply(product, group);
    multiply_one_by_one(multiplier(best_code(), product, wanted_accuracy()), product, group);
}

/// Tiles are asked for only where they are used.
MultiplyGroup best_group_code(const MatrixProduct& product) {
    if (!product.sparse && product.c == product.d && has_tile_code(product, wanted_accuracy()) && can_run(Code::amx))
        return multiply_by_tiles;
    return group_multiplier(best_code(), product, wanted_accuracy());
}

} // namespace

std::size_t bytes_of_a(const MatrixProduct& product) {
    return std::size_t{product.m} * product.stored() * bit_size(product.a) / 8;
}
std::size_t bytes_of_b(const MatrixProduct& product) {
    return std::size_t{product.n} * product.k * bit_size(product.b) / 8;
}
std::size_t bytes_of_accumulator(const MatrixProduct& product) {
    return std::size_t{product.m} * product.n * bit_size(product.d) / 8;
}

std::uint8_t* group_memory(unsigned place, std::size_t bytes) {
    thread_local std::array<Memory, 3>* memories; // small: static TLS of a library that is loaded late is scarce
    Memory& memory = per_thread(memories)[place];
    if (memory.size < bytes) {
        memory.bytes.reset(static_cast<std::uint8_t*>(::operator new[](bytes, std::align_val_t{64})));
        memory.size = bytes;
    }
    return memory.bytes.get();
}

void multiply_one_by_one(Multiply multiply, const MatrixProduct& product, const ProductGroup& group) {
    const auto* a = static_cast<const std::uint8_t*>(group.a);
    const auto* b = static_cast<const std::uint8_t*>(group.b);
    auto* accumulators = static_cast<std::uint8_t*>(group.accumulators);
    const std::size_t size = bytes_of_accumulator(product);
    for (unsigned i = 0; i < group.chain_count; ++i) {
        const abi::MatrixChain& chain = group.chains[i];
        std::uint8_t *c = accumulators + chain.c * size, *d = accumulators + chain.d * size;
        for (unsigned step = chain.first; step < chain.first + chain.count; ++step, c = d)
            multiply(product, {a + group.steps[step].a * bytes_of_a(product),
                               b + group.steps[step].b * bytes_of_b(product), c, d, nullptr});
    }
}

MultiplyGroup group_multiplier(Code code, const MatrixProduct& product, Accuracy accuracy) {
    if (product.sparse || product.c != product.d || product.scales != 0 || product.c_halvings != 0) return nullptr;
    return code == Code::portable ? nullptr : vector_group_multiplier(code, product, accuracy);
}

GroupMultiplier::GroupMultiplier(const MatrixProduct& product)
    : product_(product), code_(best_group_code(product)), single_(multiplier(best_code(), product, wanted_accuracy())) {
}

void GroupMultiplier::operator()(const ProductGroup& group) const {
    if (code_) return code_(product_, group);
    multiply_one_by_one(single_, product_, group);
}

} // namespace ptarmigan::runtime::tensor_core
