// SPDX-License-Identifier: Apache-2.0
// A lane of D is a row of A times some columns of B. Lanes that follow each other and have the same columns are a
// block; how rows and columns are dealt out to lanes is what the manual's layouts A to G say.
#include "runtime/tensor_memory/tensor_product.h"

#include "runtime/tensor_core/matrix_product.h"
#include "runtime/tensor_memory/shared_matrix.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace ptarmigan::runtime {
namespace {

using abi::TensorMemoryCall;
using tensor_core::Format;
using tensor_core::Unit;
using Kind = abi::TensorMemoryKind;

constexpr const char* outside_shared = "a matrix descriptor leaves the block's shared memory";
constexpr const char* not_allocated = "tensor memory that is not allocated";
constexpr unsigned subpartition = 32; ///< lanes that one warp can load
constexpr unsigned group_bytes = 16;  ///< of a line that lie together

struct Block {
    unsigned lane, row, lanes, first_column;
};

/// How D lies in the tensor memory of a CTA.
struct Layout {
    std::array<Block, 4> blocks{};
    unsigned count = 0;
    unsigned rows = 0;    ///< of A that the CTA has
    unsigned columns = 0; ///< of D in tensor memory

    Layout(const InstructionDescriptor& descriptor, std::uint32_t flags, unsigned first_lane) {
        const bool pair = (flags & TensorMemoryCall::pair) != 0,
                   stationary = (flags & TensorMemoryCall::weight_stationary) != 0;
        rows = pair ? descriptor.m / 2 : descriptor.m;
        const bool half = rows == 64 && !stationary && (!pair || (flags & TensorMemoryCall::sparse) != 0);
        const unsigned parts = half ? 1 : TensorMemory::lanes / rows; // of N
        columns = descriptor.n / parts;
        if (half)
            for (unsigned i = 0; i < 4; ++i) add({subpartition * i + first_lane, 16 * i, 16, 0});
        else
            for (unsigned i = 0; i < parts; ++i) add({rows * i, 0, rows, columns * i});
        is_half = half;
    }
    void add(const Block& block) { blocks.at(count++) = block; }
    bool is_half;
};

/// Elements of 4 or 6 bits that follow each other, 16 of them in 16 bytes with padding behind, to a byte each.
void spread(Format format, const std::uint8_t* from, std::uint8_t* to) {
    const unsigned bits = format == Format::e2m1_in_byte ? 4 : 6;
    for (unsigned i = 0; i < group_bytes; ++i) {
        const unsigned bit = i * bits;
        const unsigned pair = from[bit / 8] | unsigned{from[bit / 8 + 1]} << 8;
        const unsigned value = pair >> bit % 8 & ((1u << bits) - 1);
        to[i] = static_cast<std::uint8_t>(format == Format::e2m1_in_byte ? value << 2 : value);
    }
}

/// The line of a matrix in shared memory. False: it leaves that.
bool read_line(const SharedMatrix& matrix, std::span<const std::uint8_t> shared, Format format, bool transposed,
               unsigned line, unsigned elements, std::uint8_t* to) {
    const unsigned bits = shared_bits(format);
    const auto fits = [&](std::uint32_t place, unsigned bytes) {
        return place <= shared.size() && bytes <= shared.size() - place;
    };
    if (transposed) {
        const unsigned bytes = bits / 8;
        for (unsigned k = 0; k < elements; ++k) {
            const std::uint32_t place = matrix.transposed_place(line, k, bytes);
            if (!fits(place, bytes)) return false;
            std::memcpy(to + k * bytes, shared.data() + place, bytes);
        }
        return true;
    }
    for (unsigned byte = 0; byte < elements * bits / 8; byte += group_bytes) {
        const std::uint32_t place = matrix.place(line, byte);
        if (!fits(place, group_bytes)) return false;
        if (format == Format::e3m2 || format == Format::e2m3 || format == Format::e2m1_in_byte)
            spread(format, shared.data() + place, to + byte);
        else
            std::memcpy(to + byte, shared.data() + place, group_bytes);
    }
    return true;
}

/// Columns of B that count as zero (manual 9.7.16.4.3), by the examples there: runs of "use span" + 1 columns that are
/// used and of "skip span" + 1 that are not, by turns, from the start count on.
class ZeroColumns {
public:
    ZeroColumns(std::uint64_t descriptor, unsigned m, unsigned n) : bits_(descriptor), part_(n * m / 128) {}
    unsigned shift() const { return static_cast<unsigned>(bits_ >> 56 & 0x3f); }
    bool is_zero(unsigned column) const {
        if ((bits_ >> 39 & 1) == 0) return false;
        const unsigned number = column / part_;
        const auto skips = static_cast<unsigned>(bits_ >> 40 & 0xff) + 1,
                   uses = static_cast<unsigned>(bits_ >> 48 & 0xff) + 1;
        const bool skips_first = (bits_ >> (32 + number) & 1) != 0;
        const auto start = static_cast<unsigned>(bits_ >> 8 * number & 0xff);
        const unsigned at = (column % part_ + start) % (skips + uses);
        return skips_first ? at < skips : at >= uses;
    }

private:
    std::uint64_t bits_;
    unsigned part_;
};

class Multiplication {
public:
    Multiplication(const TensorProduct& product, std::span<const ProductCta> ctas)
        : product_(product), ctas_(ctas), descriptor_(product.descriptor, product.kind, product.flags, product.scales),
          d_(product.d), matrix_a_(product.a), matrix_b_(product.b) {}

    const char* run() {
        if (descriptor_.fault) return descriptor_.fault;
        const unsigned alignment = d_.lane;
        const Layout layout(descriptor_, product_.flags, alignment == 16 ? 16 : 0);
        if (alignment != 0 && !(layout.is_half && alignment == 16)) return "the lane of a matrix D is not aligned";
        if (!reads_a_from_tensor_memory())
            if (const char* rule = matrix_a_.fault(descriptor_.transposes_a ? shared_bits(descriptor_.a) / 8 : 0))
                return rule;
        if (const char* rule = matrix_b_.fault(descriptor_.transposes_b ? shared_bits(descriptor_.b) / 8 : 0))
            return rule;
        if (const char* rule = check_tensor_memory(layout)) return rule;
        if (!read_b()) return outside_shared;
        for (std::size_t cta = 0; cta < ctas_.size(); ++cta) {
            std::vector<std::uint8_t> a;
            if (!read_a(cta, layout, a)) return outside_shared;
            for (unsigned i = 0; i < layout.count; ++i) multiply_block(cta, layout, layout.blocks.at(i), a);
        }
        return nullptr;
    }

private:
    bool has(std::uint32_t flag) const { return (product_.flags & flag) != 0; }
    bool reads_a_from_tensor_memory() const { return has(TensorMemoryCall::a_in_tensor_memory); }
    unsigned stored() const { return has(TensorMemoryCall::sparse) ? descriptor_.k / 2 : descriptor_.k; }
    unsigned a_bytes() const { return stored() * shared_bits(descriptor_.a) / 8; }
    unsigned b_bytes() const { return descriptor_.k * shared_bits(descriptor_.b) / 8; }
    unsigned metadata_columns() const { return shared_bits(descriptor_.a) >= 16 ? 1 : 2; }

    const char* check_tensor_memory(const Layout& layout) const {
        const auto check = [&](std::uint32_t bits, unsigned columns, bool same_lanes) -> const char* {
            const TensorMemoryAddress address(bits);
            for (const ProductCta& cta : ctas_)
                if (!cta.memory->holds(address.column, columns)) return not_allocated;
            if (same_lanes && address.lane != d_.lane)
                return "matrices of one product have lanes of different alignment";
            return nullptr;
        };
        if (const char* rule = check(product_.d, layout.columns, true)) return rule;
        if (reads_a_from_tensor_memory())
            if (const char* rule = check(static_cast<std::uint32_t>(product_.a), a_bytes() / 4, true)) return rule;
        if (has(TensorMemoryCall::sparse))
            if (const char* rule = check(product_.metadata, descriptor_.sparsity_selector + metadata_columns(), true))
                return rule;
        if (product_.scales == 0) return nullptr;
        if (const char* rule = check(product_.scale_a, (layout.rows + subpartition - 1) / subpartition, false))
            return rule;
        return check(product_.scale_b, (layout.columns + subpartition - 1) / subpartition, false);
    }

    bool read_b() {
        const unsigned per_cta = descriptor_.n / static_cast<unsigned>(ctas_.size());
        const ZeroColumns zeros(product_.zero_columns, descriptor_.m, descriptor_.n);
        const bool masks = has(TensorMemoryCall::has_zero_columns);
        b_.assign(std::size_t{descriptor_.n} * b_bytes() + 8, 0);
        for (unsigned n = 0; n < descriptor_.n; ++n) {
            if (masks && zeros.is_zero(n)) continue;
            const unsigned line = n % per_cta + (masks ? zeros.shift() : 0);
            if (!read_line(matrix_b_, ctas_[n / per_cta].shared, descriptor_.b, descriptor_.transposes_b, line,
                           descriptor_.k, b_.data() + std::size_t{n} * b_bytes()))
                return false;
        }
        return true;
    }

    /// Rows of A by lane of the tensor memory.
    bool read_a(std::size_t cta, const Layout& layout, std::vector<std::uint8_t>& a) {
        a.assign(std::size_t{TensorMemory::lanes} * a_bytes() + 8, 0);
        const unsigned column = TensorMemoryAddress(static_cast<std::uint32_t>(product_.a)).column;
        for (unsigned i = 0; i < layout.count; ++i) {
            const Block& block = layout.blocks.at(i);
            for (unsigned row = 0; row < block.lanes; ++row) {
                const unsigned lane = block.lane + row;
                std::uint8_t* to = a.data() + std::size_t{lane} * a_bytes();
                if (!reads_a_from_tensor_memory()) {
                    if (!read_line(matrix_a_, ctas_[cta].shared, descriptor_.a, descriptor_.transposes_a,
                                   block.row + row, stored(), to))
                        return false;
                    continue;
                }
                const bool shifts = has(TensorMemoryCall::shifted_a) && lane + 1 < TensorMemory::lanes;
                for (unsigned word = 0; word < a_bytes() / 4; ++word)
                    std::memcpy(to + 4 * word, &ctas_[cta].memory->word(lane + shifts, column + word), 4);
            }
        }
        return true;
    }

    /// Which k the elements of a lane's row belong to (manual 9.7.16.10.8).
    void select(TensorMemory& memory, unsigned lane, std::uint8_t* selected) const {
        const unsigned bits = shared_bits(descriptor_.a), column = TensorMemoryAddress(product_.metadata).column;
        const unsigned chunk = bits == 32 ? 2 : bits == 4 ? 8 : 4, chunks = descriptor_.k / chunk;
        for (unsigned c = 0; c < chunks; ++c) {
            std::uint32_t word = 0;
            if (bits >= 16)
                word = memory.word((lane & ~15u) | (lane & 7) | c / 4 * 8, column + descriptor_.sparsity_selector) >>
                       4 * (c % 4 + (lane & 8) / 2);
            else
                word = memory.word(lane, column + c / 8) >> 4 * (c % 8);
            for (const unsigned index : {word & 3, word >> 2 & 3}) {
                if (bits == 4) {
                    *selected++ = static_cast<std::uint8_t>(8 * c + 2 * index);
                    *selected++ = static_cast<std::uint8_t>(8 * c + 2 * index + 1);
                } else {
                    *selected++ = static_cast<std::uint8_t>(4 * c + index); // tf32: of halves
                }
            }
        }
    }

    Unit unit() const {
        switch (product_.kind) {
        case Kind::i8: return Unit::integer;
        case Kind::mxf8f6f4: return Unit::scaled;
        case Kind::mxf4:
        case Kind::mxf4nvf4: return Unit::scaled_groups;
        default: return Unit::fused;
        }
    }

    /// Scales of lines (rows of A or columns of B), of which 32 are in the lanes of a subpartition and the next ones in
    /// the next column (manual 9.7.16.10.7.2).
    void read_scales(TensorMemory& memory, std::uint32_t bits, unsigned id, unsigned first_lane, unsigned first_line,
                     unsigned lines, std::uint8_t* to) const {
        const unsigned column = TensorMemoryAddress(bits).column;
        for (unsigned i = 0; i < lines; ++i) {
            const unsigned line = first_line + i;
            const std::uint32_t word = memory.word(first_lane + line % subpartition, column + line / subpartition);
            for (unsigned j = 0; j < product_.scales; ++j) *to++ = static_cast<std::uint8_t>(word >> 8 * (id + j));
        }
    }

    void multiply_block(std::size_t cta, const Layout& layout, const Block& block, const std::vector<std::uint8_t>& a) {
        if (product_.scales == 0) return multiply_lanes(cta, layout, block, a);
        // Each subpartition has scales of its own.
        for (unsigned from = 0; from < block.lanes; from += subpartition)
            multiply_lanes(cta, layout, {block.lane + from, block.row + from, subpartition, block.first_column}, a);
    }

    void multiply_lanes(std::size_t cta, const Layout& layout, const Block& block, const std::vector<std::uint8_t>& a) {
        TensorMemory& memory = *ctas_[cta].memory;
        const bool is_sparse = has(TensorMemoryCall::sparse), is_half = descriptor_.d == Format::f16;
        const unsigned lanes = block.lanes, columns = layout.columns;
        const std::uint8_t* lines_a = a.data() + std::size_t{block.lane} * a_bytes();
        const std::uint8_t* lines_b = b_.data() + std::size_t{block.first_column} * b_bytes();
        std::vector<std::uint8_t> scales_a(lanes * product_.scales), scales_b(columns * product_.scales);
        if (product_.scales != 0) {
            const unsigned first_lane = block.lane / subpartition * subpartition;
            read_scales(memory, product_.scale_a, descriptor_.scale_a_id, first_lane, block.row, lanes,
                        scales_a.data());
            read_scales(memory, product_.scale_b, descriptor_.scale_b_id, first_lane, 0, columns, scales_b.data());
        }

        tensor_core::MatrixProduct product{};
        product.c = product.d = descriptor_.d;
        product.unit = unit();
        product.k = static_cast<std::uint16_t>(descriptor_.k);
        product.sparse = is_sparse;
        product.saturate = descriptor_.saturates;
        product.negate_product = descriptor_.negates_a != descriptor_.negates_b;
        product.c_is_zero = !product_.accumulates;
        product.scale = descriptor_.scale;
        product.scales = static_cast<std::uint8_t>(product_.scales);
        product.c_halvings = static_cast<std::uint8_t>(product_.halvings);

        // Columns of D lie together, so D is turned: rows of the product are columns of B. Not where A is sparse.
        std::vector<std::uint32_t> room;
        const auto word_at = [&](unsigned lane, unsigned column) -> std::uint32_t& {
            return memory.word(block.lane + lane, d_.column + column);
        };
        const auto index_of = [&](unsigned lane, unsigned column) {
            return is_sparse ? std::size_t{lane} * columns + column : std::size_t{column} * lanes + lane;
        };
        const bool in_place = !is_sparse && !is_half && lanes == TensorMemory::lanes && !some_lane_stays(cta);
        room.resize(in_place ? 0 : std::size_t{lanes} * columns);
        void* d = in_place ? static_cast<void*>(memory.column(d_.column)) : room.data();
        if (!in_place && product_.accumulates)
            for (unsigned column = 0; column < columns; ++column)
                for (unsigned lane = 0; lane < lanes; ++lane)
                    store(d, is_half, index_of(lane, column), word_at(lane, column));

        if (is_sparse) {
            std::vector<std::uint8_t> selected(2 * std::size_t{lanes} * stored());
            const unsigned per_lane = shared_bits(descriptor_.a) == 32 ? 2 * stored() : stored();
            for (unsigned lane = 0; lane < lanes; ++lane)
                select(memory, block.lane + lane, selected.data() + std::size_t{lane} * per_lane);
            product.a = descriptor_.a;
            product.b = descriptor_.b;
            product.m = static_cast<std::uint16_t>(lanes);
            product.n = static_cast<std::uint16_t>(columns);
            tensor_core::multiply(product, lines_a, lines_b, d, d, selected.data(), {scales_a.data(), scales_b.data()});
        } else {
            product.a = descriptor_.b;
            product.b = descriptor_.a;
            product.m = static_cast<std::uint16_t>(columns);
            product.n = static_cast<std::uint16_t>(lanes);
            tensor_core::multiply(product, lines_b, lines_a, d, d, nullptr, {scales_b.data(), scales_a.data()});
        }

        if (in_place) return;
        for (unsigned lane = 0; lane < lanes; ++lane) {
            if (stays(cta, block.lane + lane)) continue;
            for (unsigned column = 0; column < columns; ++column)
                word_at(lane, column) = fetch(d, is_half, index_of(lane, column));
        }
    }

    static void store(void* matrix, bool is_half, std::size_t index, std::uint32_t word) {
        if (is_half)
            static_cast<std::uint16_t*>(matrix)[index] = static_cast<std::uint16_t>(word);
        else
            static_cast<std::uint32_t*>(matrix)[index] = word;
    }
    static std::uint32_t fetch(const void* matrix, bool is_half, std::size_t index) {
        return is_half ? static_cast<const std::uint16_t*>(matrix)[index]
                       : static_cast<const std::uint32_t*>(matrix)[index];
    }

    bool stays(std::size_t cta, unsigned lane) const {
        return has(TensorMemoryCall::has_lanes) && (product_.lanes.at(4 * cta + lane / 32) >> lane % 32 & 1) != 0;
    }
    bool some_lane_stays(std::size_t cta) const {
        return has(TensorMemoryCall::has_lanes) && std::any_of(product_.lanes.begin() + 4 * std::ptrdiff_t(cta),
                                                               product_.lanes.begin() + 4 * std::ptrdiff_t(cta) + 4,
                                                               [](std::uint32_t word) { return word != 0; });
    }

    const TensorProduct& product_;
    std::span<const ProductCta> ctas_;
    InstructionDescriptor descriptor_;
    TensorMemoryAddress d_;
    SharedMatrix matrix_a_, matrix_b_;
    std::vector<std::uint8_t> b_; ///< all columns of B
};

} // namespace

const char* multiply(const TensorProduct& product, std::span<const ProductCta> ctas) {
    return Multiplication(product, ctas).run();
}

} // namespace ptarmigan::runtime
