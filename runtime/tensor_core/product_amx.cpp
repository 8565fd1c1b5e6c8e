// SPDX-License-Identifier: Apache-2.0
// Groups on AMX's tiles: bytes, exactly, and bf16 as PTARMIGAN_MMA=fast may. C and D as they lie, B's columns turned so
// that four bytes (two bf16) of each stand side by side. A product of mma.sync would be an instruction on half a tile,
// so two (or four) that follow each other in a chain are one.
#include "runtime/tensor_core/vector_product.h"

#include "runtime/tensor_core/lanes_avx512.h"

#include "runtime/tensor_core/packed_lines.h"

#include <cstring>

namespace ptarmigan::runtime::tensor_core {
namespace {

enum class Kind : std::uint8_t { ss, su, us, uu, bf16 };

struct alignas(64) TileShapes {
    std::uint8_t palette = 1, first_row = 0, unused[14] = {};
    std::uint16_t row_bytes[16] = {};
    std::uint8_t rows[16] = {};
};

constexpr unsigned together = 4; ///< accumulators 0 to 3, A in 4, B in 5 to 7

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

/// Steps of a chain that are one operation of tiles, whose lines have 64 bytes: mma's matrices have 16 or 32.
constexpr unsigned most_joined = 4;

/// All matrices of a group as tiles: joined ones side by side (A) or one above the other (B, whose columns are turned),
/// each where the first one's number says.
template <unsigned columns> class Tiles {
public:
    static constexpr long b_row = columns * 4;

    Tiles(const MatrixProduct& product, const ProductGroup& group)
        : group_(group), m_(product.m), line_bytes_(line_bytes_of(product)), joined_(64 / line_bytes_),
          a_(group_memory(1, group.a_count * bytes_of_a() + group.b_count * bytes_of_b())),
          b_(a_ + group.a_count * bytes_of_a()) {
        if (pack()) return;
        joined_ = 1; // a matrix has other companions elsewhere
        pack();
    }

    unsigned joined() const { return joined_; }
    long a_row() const { return static_cast<long>(joined_) * line_bytes_; }
    unsigned b_rows() const { return joined_ * line_bytes_ / 4; }
    const std::uint8_t* a_of(const abi::MatrixStep& step) const { return a_ + step.a * bytes_of_a(); }
    const std::uint8_t* b_of(const abi::MatrixStep& step) const { return b_ + step.b * bytes_of_b(); }

private:
    static constexpr std::uint16_t unknown = 0xffff, none = 0xfffe;
    /// By number of the first matrix: those that are joined to it.
    struct Companions {
        std::uint16_t of[256][most_joined - 1];
        Companions() { std::memset(of, 0xff, sizeof of); }
    };

    std::size_t bytes_of_a() const { return std::size_t{m_} * 64; }
    static constexpr std::size_t bytes_of_b() { return std::size_t{columns} * 64; }

    bool pack() {
        Companions of_a, of_b;
        for (unsigned i = 0; i < group_.chain_count; ++i) {
            const abi::MatrixStep* steps = group_.steps + group_.chains[i].first;
            for (unsigned left = group_.chains[i].count; left > 0;) {
                const unsigned count = left < joined_ ? left : joined_;
                std::uint16_t a[most_joined], b[most_joined];
                for (unsigned j = 0; j < joined_; ++j) {
                    a[j] = j < count ? steps[j].a : none;
                    b[j] = j < count ? steps[j].b : none;
                }
                const bool a_fits = add(of_a, a, [&] { pack_a(a); }), b_fits = add(of_b, b, [&] { pack_b(b); });
                if (!a_fits || !b_fits) return false;
                steps += count;
                left -= count;
            }
        }
        return true;
    }

    /// `pack` if they are new; false if others are joined to the first one already.
    template <class Pack> bool add(Companions& companions, const std::uint16_t* matrices, const Pack& pack) const {
        std::uint16_t* of_first = companions.of[matrices[0]];
        bool is_new = false, fits = true;
        if (joined_ == 1) { // of one that is alone only whether it was seen counts
            is_new = of_first[0] == unknown;
            of_first[0] = none;
        }
        for (unsigned j = 1; j < joined_; ++j) {
            is_new |= of_first[j - 1] == unknown;
            if (of_first[j - 1] == unknown) of_first[j - 1] = matrices[j];
            fits &= of_first[j - 1] == matrices[j];
        }
        if (is_new) pack();
        return fits;
    }

    void pack_a(const std::uint16_t* matrices) const {
        std::uint8_t* to = a_ + matrices[0] * bytes_of_a();
        const std::size_t row = joined_ * std::size_t{line_bytes_}, bytes = m_ * std::size_t{line_bytes_};
        for (unsigned j = 0; j < joined_; ++j, to += line_bytes_) {
            if (matrices[j] == none) {
                for (unsigned i = 0; i < m_; ++i) std::memset(to + i * row, 0, line_bytes_);
                continue;
            }
            const std::uint8_t* from = static_cast<const std::uint8_t*>(group_.a) + matrices[j] * bytes;
            if (line_bytes_ == 32) // of a known length: a register
                for (unsigned i = 0; i < m_; ++i) std::memcpy(to + i * row, from + i * 32, 32);
            else
                for (unsigned i = 0; i < m_; ++i) std::memcpy(to + i * row, from + i * line_bytes_, line_bytes_);
        }
    }

    void pack_b(const std::uint16_t* matrices) const {
        const unsigned words = line_bytes_ / 4;
        auto* to = reinterpret_cast<std::uint32_t*>(b_ + matrices[0] * bytes_of_b());
        for (unsigned j = 0; j < joined_; ++j, to += words * columns) {
            if (matrices[j] == none) {
                std::memset(to, 0, std::size_t{words} * columns * 4);
                continue;
            }
            const auto* lines =
                static_cast<const std::uint32_t*>(group_.b) + matrices[j] * std::size_t{words} * columns;
            if constexpr (columns == Lanes::width) {
                turn_lines(lines, words, to);
            } else {
                for (unsigned column = 0; column < columns; ++column)
                    for (unsigned word = 0; word < words; ++word)
                        to[word * columns + column] = lines[column * words + word];
            }
        }
    }

    const ProductGroup& group_;
    unsigned m_, line_bytes_, joined_;
    std::uint8_t *a_, *b_;
};

/// How many chains from the first one on may be done side by side: of one length, and none needs another's result.
unsigned independent_chains(const abi::MatrixChain* chains, unsigned most) {
    unsigned count = 1;
    for (; count < most && chains[count].count == chains[0].count; ++count)
        for (unsigned j = 0; j < count; ++j)
            if (chains[count].c == chains[j].d || chains[count].d == chains[j].c || chains[count].d == chains[j].d)
                return count;
    return count;
}

template <Kind kind, unsigned columns> void multiply_tiles(const MatrixProduct& product, const ProductGroup& group) {
    const Tiles<columns> tiles(product, group);
    constexpr long row = columns * 4;
    TileShapes shapes;
    for (unsigned tile = 0; tile < 5; ++tile) {
        shapes.rows[tile] = static_cast<std::uint8_t>(product.m);
        shapes.row_bytes[tile] = static_cast<std::uint16_t>(tile < together ? row : tiles.a_row());
    }
    for (unsigned tile = 5; tile < 8; ++tile) {
        shapes.rows[tile] = static_cast<std::uint8_t>(tiles.b_rows());
        shapes.row_bytes[tile] = row;
    }
    const std::size_t size = std::size_t{product.m} * columns * 4;
    auto* accumulators = static_cast<std::uint8_t*>(group.accumulators);
    const long a_row = tiles.a_row();

    __asm__ volatile("ldtilecfg %0" ::"m"(shapes) : "memory");
    for (unsigned i = 0; i < group.chain_count;) {
        const abi::MatrixChain* chains = group.chains + i;
        const unsigned left = group.chain_count - i;
        const auto steps_of = [&](unsigned chain) { return group.steps + chains[chain].first; };
        if (independent_chains(chains, left < together ? left : together) == together) {
            PTM_LOAD_TILE(0, accumulators + chains[0].c * size, row);
            PTM_LOAD_TILE(1, accumulators + chains[1].c * size, row);
            PTM_LOAD_TILE(2, accumulators + chains[2].c * size, row);
            PTM_LOAD_TILE(3, accumulators + chains[3].c * size, row);
            for (unsigned step = 0; step < chains[0].count; step += tiles.joined()) {
                const abi::MatrixStep &first = steps_of(0)[step], &second = steps_of(1)[step],
                                      &third = steps_of(2)[step], &fourth = steps_of(3)[step];
                PTM_LOAD_TILE(4, tiles.a_of(first), a_row);
                PTM_LOAD_TILE(5, tiles.b_of(first), row);
                PTM_MULTIPLY_TILES(0, 4, 5);
                if (second.a != first.a) PTM_LOAD_TILE(4, tiles.a_of(second), a_row); // mostly neighbours in a row
                PTM_LOAD_TILE(6, tiles.b_of(second), row);
                PTM_MULTIPLY_TILES(1, 4, 6);
                if (third.a != second.a) PTM_LOAD_TILE(4, tiles.a_of(third), a_row);
                PTM_LOAD_TILE(7, tiles.b_of(third), row);
                PTM_MULTIPLY_TILES(2, 4, 7);
                if (fourth.a != third.a) PTM_LOAD_TILE(4, tiles.a_of(fourth), a_row);
                PTM_LOAD_TILE(5, tiles.b_of(fourth), row);
                PTM_MULTIPLY_TILES(3, 4, 5);
            }
            PTM_STORE_TILE(0, accumulators + chains[0].d * size, row);
            PTM_STORE_TILE(1, accumulators + chains[1].d * size, row);
            PTM_STORE_TILE(2, accumulators + chains[2].d * size, row);
            PTM_STORE_TILE(3, accumulators + chains[3].d * size, row);
            i += together;
            continue;
        }
        PTM_LOAD_TILE(0, accumulators + chains[0].c * size, row);
        for (unsigned step = 0; step < chains[0].count; step += tiles.joined()) {
            PTM_LOAD_TILE(4, tiles.a_of(steps_of(0)[step]), a_row);
            PTM_LOAD_TILE(5, tiles.b_of(steps_of(0)[step]), row);
            PTM_MULTIPLY_TILES(0, 4, 5);
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
