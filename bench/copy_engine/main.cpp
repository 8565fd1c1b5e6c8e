// SPDX-License-Identifier: Apache-2.0
// Tiles of tensors that stay in the cache: copies of a tile that is known, and all that an
// instruction asks for (its map's tile found, checked and copied), against the portable form and
// against memcpy of as many bytes.
#include "runtime/copy_engine/copy_engine.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

using namespace ptarmigan::runtime;

namespace {

constexpr unsigned repetitions = 2000, rounds = 15;

/// Nanoseconds of the fastest round.
double time_of(const std::function<void()>& body, unsigned repetitions = ::repetitions) {
    double best = 1e9;
    for (unsigned round = 0; round < rounds; ++round) {
        const auto start = std::chrono::steady_clock::now();
        for (unsigned i = 0; i < repetitions; ++i) body();
        const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
        best = std::min(best, time.count() / repetitions);
    }
    return best;
}

struct Case {
    const char* name;
    TensorType type;
    std::uint32_t columns, rows;
    Swizzle swizzle;
    std::int32_t column; ///< of the tile in a tensor that is as wide as the tile
};

constexpr Case cases[] = {
    {"64x64 f16, 128B swizzle", TensorType::f16, 64, 64, Swizzle::span_128, 0},
    {"64x64 f16, 128B swizzle, half outside", TensorType::f16, 64, 64, Swizzle::span_128, 32},
    {"64x32 f32, 128B swizzle", TensorType::f32, 32, 64, Swizzle::span_128, 0},
    {"64x32 tf32, 128B swizzle", TensorType::tf32, 32, 64, Swizzle::span_128, 0},
    {"64x48 f16, 96B swizzle", TensorType::f16, 48, 64, Swizzle::span_96, 0},
    {"64x128 b6x16, 128B swizzle", TensorType::b6x16_p32, 128, 64, Swizzle::span_128, 0},
    {"64x32 f16, 64B swizzle", TensorType::f16, 32, 64, Swizzle::span_64, 0},
    {"64x16 f16, 32B swizzle", TensorType::f16, 16, 64, Swizzle::span_32, 0},
    {"64x64 f16, no swizzle", TensorType::f16, 64, 64, Swizzle::none, 0},
};

/// 8 KiB of elements reduced into memory: what one copy with a reduction does.
void time_reductions(std::uint8_t* target, const std::uint8_t* source) {
    constexpr std::size_t bytes = 8192;
    using enum BulkReduction;
    constexpr struct {
        const char* name;
        BulkReduction operation;
        TensorType type;
    } cases[] = {{"add f32", add, TensorType::f32}, {"add f32.ftz", add, TensorType::f32_ftz},
                 {"add f16", add, TensorType::f16}, {"add bf16", add, TensorType::bf16},
                 {"add u32", add, TensorType::u32}, {"add f64", add, TensorType::f64},
                 {"inc u32", inc, TensorType::u32}, {"dec u32", dec, TensorType::u32},
                 {"min f16", min, TensorType::f16}, {"max bf16", max, TensorType::bf16},
                 {"min s64", min, TensorType::s64}, {"max u64", max, TensorType::u64}};
    std::printf("\n| reduction, 8 KiB | ns | portable ns | times |\n| --- | --- | --- | --- |\n");
    for (const auto& [name, operation, type] : cases) {
        const std::size_t count = bytes / tensor_element_bytes(type);
        const ReduceRun run = reduce_run(operation, type), plain = reduce_run_portably(operation, type);
        const double ns = time_of([&] { run(target, source, count); }, repetitions / 10),
                     portable = time_of([&] { plain(target, source, count); }, repetitions / 10);
        std::printf("| %s | %.0f | %.0f | %.1f |\n", name, ns, portable, portable / ns);
    }
}

} // namespace

int main() {
    auto *tensor = static_cast<std::uint8_t*>(std::aligned_alloc(4096, 1 << 20)),
         *tile = static_cast<std::uint8_t*>(std::aligned_alloc(4096, 1 << 16));
    std::memset(tensor, 1, 1 << 20);
    std::memset(tile, 2, 1 << 16);
    std::printf("| tile | memcpy ns | load ns | of memcpy | store ns | from the map ns | portable "
                "load ns | times "
                "|\n| --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (const Case& c : cases) {
        TensorMapFields map;
        map.address = reinterpret_cast<std::uint64_t>(tensor);
        map.rank = 2;
        map.type = c.type;
        map.swizzle = c.swizzle;
        map.dim = {c.columns, c.rows};
        map.stride = {std::uint64_t{c.columns} * tensor_element_bits(c.type) / 8};
        map.box = {c.columns, c.rows};
        map.step.fill(1);
        TensorMap bytes_of_map{};
        encode(map, bytes_of_map);
        TensorPosition position;
        position.at[0] = c.column;
        TensorTile shape;
        if (tile_of_map(bytes_of_map, TensorMode::tile, 2, position, shape)) return 1;
        const auto tile_for_load = [&]() -> const TensorTile& {
            const TensorTile* found = nullptr;
            if (tile_of_map(bytes_of_map, TensorMode::tile, 2, position, found) ||
                position_rule(*found, position, false))
                std::abort();
            return *found;
        };
        const std::size_t bytes = tile_bytes(shape);
        const double copy = time_of([&] {
            std::memcpy(tile, tensor, bytes);
            asm volatile("" ::"r"(tile) : "memory");
        });
        const double load = time_of([&] { load_tile(shape, position, tile); });
        const double store = time_of([&] { store_tile(shape, position, tile); });
        const double whole = time_of([&] { load_tile(tile_for_load(), position, tile); });
        const double portable = time_of([&] { load_tile_portably(shape, position, tile); });
        std::printf("| %s | %.0f | %.0f | %.0f %% | %.0f | %.0f | %.0f | %.1f |\n", c.name, copy, load,
                    100 * copy / load, store, whole, portable, portable / load);
    }
    std::memset(tensor, 0, 1 << 16);
    std::memset(tile, 0, 1 << 16);
    time_reductions(tensor, tile);
}
