// SPDX-License-Identifier: Apache-2.0
// The generator (xbyak): eight rows unrolled, each with its own exchange of 16-byte pieces, and a
// way in at each of them. Whole rows move by the widest vectors, cut ones piece by piece.
#include "runtime/copy_engine/row_code.h"

#include "runtime/base/env.h"

#include <memory>
#include <mutex>
#include <unordered_map>

#if defined(__x86_64__)
#include <xbyak/xbyak.h>
#include <xbyak/xbyak_util.h>
#endif

namespace ptarmigan::runtime {

#if defined(__x86_64__)

namespace {

RowVectors detect() {
    const Xbyak::util::Cpu cpu;
    using Xbyak::util::Cpu;
    const std::string target = env_text(Env::target);
    const bool narrow = target == "x86-64-v3";
    if (!narrow && cpu.has(Cpu::tAVX512F)) return RowVectors::avx512;
    return cpu.has(Cpu::tAVX2) ? RowVectors::avx2 : RowVectors::none;
}

} // namespace

class RowGenerator : Xbyak::CodeGenerator {
public:
    RowGenerator(const RowShape& shape, RowVectors vectors)
        : CodeGenerator(code_bytes(shape), Xbyak::DontSetProtectRWE), shape_(shape),
          wide_(vectors == RowVectors::avx512),
          swizzle_(SwizzlePattern::of(shape.swizzle, shape.atom)) {
        code.entry_ = getCurr<RowCode::Entry>();
        if (shape.cut() && !shape.store)
            for (int i = 0; i < 3; ++i) vmovdqu(Xbyak::Xmm(outside + i), ptr[r8 + i * 16]);
        jmp(r9);
        Xbyak::Label loop, done;
        L(loop);
        for (unsigned row = 0; row < row_period; ++row) {
            code.starts_[row] = getCurr();
            // The exchange is the same for a whole row: it lies within one 128-byte line, and its
            // pieces stay within its pitch.
            const unsigned exchange = swizzle_.exchange(row * shape.pitch >> 7);
            if (shape.cut())
                move_pieces(row * shape.pitch, exchange);
            else
                move_row(row * shape.pitch, exchange);
            add(rsi, rcx);
            dec(rdx);
            jz(done, T_NEAR);
        }
        add(rdi, row_period * shape.pitch);
        jmp(loop, T_NEAR);
        L(done);
        vzeroupper();
        ret();
        ready();
        setProtectModeRE();
    }

    RowCode code;

private:
    static constexpr int outside = 13, keep = 14, rest = 15; ///< registers of RowFill

    /// At most 24 bytes for each piece of 16, and some for what is around.
    static std::size_t code_bytes(const RowShape& shape) {
        return 1024 + row_period * (std::size_t{shape.bytes} / 16 * 24 + 32);
    }

    void move_row(std::uint32_t row, unsigned exchange) {
        for (std::uint32_t at = 0; at < shape_.bytes;) {
            const std::uint32_t left = shape_.bytes - at;
            const unsigned width = wide_ && left >= 64 ? 64 : left >= 32 ? 32 : 16;
            const auto tile = ptr[rdi + row + (at ^ (exchange & ~(width - 1)))],
                       tensor = ptr[rsi + at];
            const int number = static_cast<int>(at / 16 % 8);
            if (width == 64)
                move(Xbyak::Zmm(number), tile, tensor, exchange);
            else if (width == 32)
                move(Xbyak::Ymm(number), tile, tensor, exchange);
            else
                move(Xbyak::Xmm(number), tile, tensor, exchange);
            at += width;
        }
    }

    /// Piece by piece: filled, copied, or both.
    void move_pieces(std::uint32_t row, unsigned exchange) {
        for (std::uint32_t at = 0; at < shape_.bytes; at += 16) {
            const auto tile = ptr[rdi + row + (at ^ (exchange & ~15u))], tensor = ptr[rsi + at];
            const Xbyak::Xmm data(static_cast<int>(at / 16 % 8));
            const bool inside = at >= shape_.first && at < shape_.last;
            if (inside && shape_.partial && at + 16 == shape_.last) {
                // A piece is aligned, so reading all of it leaves no page that the tensor has.
                vpand(data, Xbyak::Xmm(keep), tensor);
                vpor(data, data, Xbyak::Xmm(rest));
                permute(data, exchange);
                vmovdqu(tile, data);
            } else if (inside) {
                move(data, tile, tensor, exchange);
            } else if (!shape_.store) {
                vmovdqu(tile, Xbyak::Xmm(outside)); // the same whatever the exchange: 16-bit words
            }
        }
    }

    void move(const Xbyak::Zmm& data, const Xbyak::Address& tile, const Xbyak::Address& tensor,
              unsigned exchange) {
        vmovdqu64(data, shape_.store ? tile : tensor);
        permute(data, exchange);
        vmovdqu64(shape_.store ? tensor : tile, data);
    }
    template <class Vector>
    void move(const Vector& data, const Xbyak::Address& tile, const Xbyak::Address& tensor,
              unsigned exchange) {
        vmovdqu(data, shape_.store ? tile : tensor);
        permute(data, exchange);
        vmovdqu(shape_.store ? tensor : tile, data);
    }

    void permute(const Xbyak::Zmm& data, unsigned exchange) {
        if (const unsigned pieces = exchange >> 4 & 3; pieces != 0) {
            unsigned order = 0;
            for (unsigned i = 0; i < 4; ++i) order |= (i ^ pieces) << 2 * i;
            vshufi64x2(data, data, data, static_cast<std::uint8_t>(order));
        }
        if ((exchange & 8) != 0) vpermilpd(data, data, 0x55);
    }
    void permute(const Xbyak::Ymm& data, unsigned exchange) {
        if ((exchange & 16) != 0) vpermq(data, data, 0x4e);
        if ((exchange & 8) != 0) vpermilpd(data, data, 0x5);
    }
    void permute(const Xbyak::Xmm& data, unsigned exchange) {
        if ((exchange & 8) != 0) vpermilpd(data, data, 0x1);
    }

    RowShape shape_;
    bool wide_;
    SwizzlePattern swizzle_;
};

namespace {

bool can_generate(const RowShape& shape, RowVectors vectors) {
    return vectors != RowVectors::none && shape.bytes != 0 && shape.bytes % 16 == 0 &&
           shape.bytes <= shape.pitch &&
           shape.bytes <= (shape.cut() ? most_cut_bytes : most_row_bytes);
}

std::uint64_t key_of(const RowShape& shape, RowVectors vectors) {
    std::uint64_t key = 1;
    const auto add = [&](std::uint64_t value, unsigned bits) { key = key << bits | value; };
    add(shape.bytes / 16, 8);
    add(shape.pitch / 16, 8);
    add(shape.cut() ? shape.first / 16 : 0, 5); // at most 16 where rows are cut
    add(shape.cut() ? shape.last / 16 : 0, 5);
    add(shape.cut(), 1);
    add(shape.partial, 1);
    add(shape.store, 1);
    add(static_cast<std::uint64_t>(shape.swizzle), 3);
    add(static_cast<std::uint64_t>(shape.atom), 2);
    add(static_cast<std::uint64_t>(vectors), 2);
    return key;
}

struct Table {
    std::mutex mutex;
    std::unordered_map<std::uint64_t, std::unique_ptr<RowGenerator>> codes;
    static Table& get() {
        static auto* table = new Table; // never destroyed: kernels may run until the process ends
        return *table;
    }
};

} // namespace

RowVectors row_vectors() {
    static const RowVectors vectors = detect();
    return vectors;
}

const RowCode* row_code(const RowShape& shape, RowVectors vectors) {
    if (!can_generate(shape, vectors)) return nullptr;
    const std::uint64_t key = key_of(shape, vectors);
    struct Recent {
        std::uint64_t key = 0;
        const RowCode* code = nullptr;
    };
    thread_local std::array<Recent, 16> recent;
    Recent& last = recent[(key ^ key >> 16 ^ key >> 32 ^ key >> 40) % recent.size()];
    if (last.key == key) return last.code;
    Table& table = Table::get();
    std::lock_guard lock(table.mutex);
    std::unique_ptr<RowGenerator>& made = table.codes[key];
    if (!made) made = std::make_unique<RowGenerator>(shape, vectors);
    last = {key, &made->code};
    return last.code;
}

#else

RowVectors row_vectors() {
    return RowVectors::none;
}
const RowCode* row_code(const RowShape&, RowVectors) {
    return nullptr;
}

#endif

} // namespace ptarmigan::runtime
