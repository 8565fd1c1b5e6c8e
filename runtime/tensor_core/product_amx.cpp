// SPDX-License-Identifier: Apache-2.0
// Groups on AMX's tiles: bytes, exactly, and bf16 as PTARMIGAN_MMA=fast may. A product of mma.sync is one instruction
// on tiles: A as it lies, C and D as they lie, B's columns turned so that four bytes (two bf16) of each stand side by
// side.
#include "runtime/tensor_core/vector_product.h"

#include "runtime/tensor_core/lanes_avx512.h"

#include <cstring>

namespace ptarmigan::runtime::tensor_core {
namespace {

enum class Kind : std::uint8_t { ss, su, us, uu, bf16 };

struct alignas(64) TileShapes {
    std::uint8_t palette = 1, first_row = 0, unused[14] = {};
    std::uint16_t row_bytes[16] = {};
    std::uint8_t rows[16] = {};
};

constexpr unsigned together = 4; ///< accumulators 0 to 3, A in 4 and 5, B in 6 and 7

// The instructions name their tiles, so these are macros. GCC's do not say that they read memory.
#define PTM_LOAD_TILE(tile, from, stride)                                                                              \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile ::"r"(from), "r"(static_cast<long>(stride)) : "memory")
#define PTM_STORE_TILE(tile, to, stride)                                                                               \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" ::"r"(to), "r"(static_cast<long>(stride)) : "memory")
#define PTM_MULTIPLY_TILES(d, a, b)                                                                                    \
    if constexpr (kind == Kind::ss)                                                                                    \
        __asm__ volatile("tdpbssd %%tmm" #b ", %%tmm" #a ", %%tmm" #d ::);                                             \
    else if constexpr (kind == Kind::su)                                                                               \
        __asm__ volatile("tdpbsud %%tmm" #b ", %%tmm" #a ", %%tmm" #d ::);                                             \
    else if constexpr (kind == Kind::us)                                                                               \
        __asm__ volatile("tdpbusd %%tmm" #b ", %%tmm" #a ", %%tmm" #d ::);                                             \
    else if constexpr (kind == Kind::uu)                                                                               \
        __asm__ volatile("tdpbuud %%tmm" #b ", %%tmm" #a ", %%tmm" #d ::);                                             \
    else                                                                                                               \
        __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #d ::)

/// Bytes of a row of A, or of a column of B.
unsigned line_bytes_of(const MatrixProduct& product) {
    return product.a == Format::bf16 ? product.k * 2u : product.k;
}

/// Where the matrices of a step are. Turned columns lie in blocks of `Lanes::width`, of which a matrix may be half.
struct Places {
    const std::uint8_t* a;
    const std::uint32_t* b;
    std::size_t a_bytes;
    unsigned columns, words;

    const std::uint8_t* a_of(const abi::MatrixStep& step) const { return a + step.a * a_bytes; }
    const std::uint32_t* b_of(const abi::MatrixStep& step) const {
        const unsigned column = step.b * columns, inside = column % Lanes::width;
        return b + (column - inside) * words + inside;
    }
};

constexpr unsigned lines_at_once = Lanes::width; ///< columns of B that are turned together
constexpr unsigned most_words = 16;              ///< of such a line

/// Lines behind each other, `words` words each: those of the same place side by side.
void turn(const std::uint32_t* lines, unsigned words, std::uint32_t* to) {
    Lanes::Int part[8];
    unsigned word = 0;
    for (; word + 8 <= words; word += 8) {
        Lanes::load_lines(lines + word, words, part);
        for (unsigned i = 0; i < 8; ++i) Lanes::store(to + (word + i) * lines_at_once, part[i]);
    }
    if (word == words) return;
    Lanes::load_short_lines(lines + word, words, part);
    for (unsigned i = 0; i < 4; ++i) Lanes::store(to + (word + i) * lines_at_once, part[i]);
}

/// All columns of B, 16 together.
std::uint32_t* turn_columns(const void* b, unsigned columns, unsigned words) {
    const auto* from = static_cast<const std::uint32_t*>(b);
    const unsigned whole = columns / lines_at_once * lines_at_once;
    auto* turned = reinterpret_cast<std::uint32_t*>(group_memory(1, (whole + lines_at_once) * words * sizeof *from));
    for (unsigned column = 0; column < whole; column += lines_at_once)
        turn(from + column * words, words, turned + column * words);
    if (whole == columns) return turned;
    alignas(64) std::uint32_t rest[lines_at_once * most_words] = {};
    std::memcpy(rest, from + whole * words, (columns - whole) * words * sizeof *from);
    turn(rest, words, turned + whole * words);
    return turned;
}

template <Kind kind, unsigned columns> void multiply_tiles(const MatrixProduct& product, const ProductGroup& group) {
    constexpr long row = columns * 4, turned_row = lines_at_once * 4;
    const unsigned line_bytes = line_bytes_of(product), words = line_bytes / 4;
    TileShapes shapes;
    for (unsigned tile = 0; tile < 6; ++tile) {
        shapes.rows[tile] = static_cast<std::uint8_t>(product.m);
        shapes.row_bytes[tile] = static_cast<std::uint16_t>(tile < together ? row : line_bytes);
    }
    for (unsigned tile = 6; tile < 8; ++tile) {
        shapes.rows[tile] = static_cast<std::uint8_t>(words);
        shapes.row_bytes[tile] = row;
    }

    const std::size_t size = std::size_t{product.m} * columns * 4;
    const std::uint32_t* turned = turn_columns(group.b, group.b_count * columns, words);
    const Places places{static_cast<const std::uint8_t*>(group.a), turned, std::size_t{product.m} * line_bytes, columns,
                        words};
    auto* accumulators = static_cast<std::uint8_t*>(group.accumulators);
    const long a_row = line_bytes;

    __asm__ volatile("ldtilecfg %0" ::"m"(shapes) : "memory");
    for (unsigned i = 0; i < group.chain_count;) {
        const abi::MatrixChain* chains = group.chains + i;
        // Chains that do not need each other's results, of one length.
        unsigned count = 1;
        while (count < together && i + count < group.chain_count && chains[count].count == chains[0].count) {
            bool needs = false;
            for (unsigned j = 0; j < count; ++j)
                needs |= chains[count].c == chains[j].d || chains[count].d == chains[j].c;
            if (needs) break;
            ++count;
        }
        const abi::MatrixStep* steps = group.steps;
        if (count == together) {
            PTM_LOAD_TILE(0, accumulators + chains[0].c * size, row);
            PTM_LOAD_TILE(1, accumulators + chains[1].c * size, row);
            PTM_LOAD_TILE(2, accumulators + chains[2].c * size, row);
            PTM_LOAD_TILE(3, accumulators + chains[3].c * size, row);
            for (unsigned step = 0; step < chains[0].count; ++step) {
                const abi::MatrixStep &first = steps[chains[0].first + step], &second = steps[chains[1].first + step],
                                      &third = steps[chains[2].first + step], &fourth = steps[chains[3].first + step];
                PTM_LOAD_TILE(4, places.a_of(first), a_row);
                PTM_LOAD_TILE(6, places.b_of(first), turned_row);
                PTM_LOAD_TILE(7, places.b_of(second), turned_row);
                PTM_MULTIPLY_TILES(0, 4, 6);
                if (second.a == first.a && third.a == first.a && fourth.a == first.a) { // a row of tiles
                    PTM_MULTIPLY_TILES(1, 4, 7);
                    PTM_LOAD_TILE(6, places.b_of(third), turned_row);
                    PTM_LOAD_TILE(7, places.b_of(fourth), turned_row);
                    PTM_MULTIPLY_TILES(2, 4, 6);
                    PTM_MULTIPLY_TILES(3, 4, 7);
                    continue;
                }
                PTM_LOAD_TILE(5, places.a_of(second), a_row);
                PTM_MULTIPLY_TILES(1, 5, 7);
                PTM_LOAD_TILE(4, places.a_of(third), a_row);
                PTM_LOAD_TILE(6, places.b_of(third), turned_row);
                PTM_MULTIPLY_TILES(2, 4, 6);
                PTM_LOAD_TILE(5, places.a_of(fourth), a_row);
                PTM_LOAD_TILE(7, places.b_of(fourth), turned_row);
                PTM_MULTIPLY_TILES(3, 5, 7);
            }
            PTM_STORE_TILE(0, accumulators + chains[0].d * size, row);
            PTM_STORE_TILE(1, accumulators + chains[1].d * size, row);
            PTM_STORE_TILE(2, accumulators + chains[2].d * size, row);
            PTM_STORE_TILE(3, accumulators + chains[3].d * size, row);
            i += together;
            continue;
        }
        PTM_LOAD_TILE(0, accumulators + chains[0].c * size, row);
        for (unsigned step = 0; step < chains[0].count; ++step) {
            PTM_LOAD_TILE(4, places.a_of(steps[chains[0].first + step]), a_row);
            PTM_LOAD_TILE(6, places.b_of(steps[chains[0].first + step]), turned_row);
            PTM_MULTIPLY_TILES(0, 4, 6);
        }
        PTM_STORE_TILE(0, accumulators + chains[0].d * size, row);
        ++i;
    }
    __asm__ volatile("tilerelease" ::: "memory");
}

template <Kind kind> MultiplyGroup tiles_code(const MatrixProduct& product) {
    return product.n == 8 ? multiply_tiles<kind, 8> : multiply_tiles<kind, 16>;
}

} // namespace

MultiplyGroup amx_group_multiplier(const MatrixProduct& product, Accuracy accuracy) {
    const unsigned line_bytes = line_bytes_of(product);
    if (product.m > 16 || (product.n != 8 && product.n != 16) || line_bytes % 16 != 0 || line_bytes > 64)
        return nullptr;
    const auto is_byte = [](Format format) { return format == Format::s8 || format == Format::u8; };
    if (product.unit == Unit::integer && !product.saturate && is_byte(product.a) && is_byte(product.b)) {
        const bool a_has_sign = product.a == Format::s8, b_has_sign = product.b == Format::s8;
        return a_has_sign   ? b_has_sign ? tiles_code<Kind::ss>(product) : tiles_code<Kind::su>(product)
                 : b_has_sign ? tiles_code<Kind::us>(product)
                            : tiles_code<Kind::uu>(product);
    }
    const bool is_fast = accuracy == Accuracy::fast && product.a == Format::bf16 && product.d == Format::f32;
    return is_fast ? tiles_code<Kind::bf16>(product) : nullptr;
}

} // namespace ptarmigan::runtime::tensor_core
