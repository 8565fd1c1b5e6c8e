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
          wide_(vectors == RowVectors::avx512), swizzle_(SwizzlePattern::of(shape.swizzle, shape.atom)) {
        code.entry_ = getCurr<RowCode::Entry>();
        load_fill();
        jmp(r9);
        Xbyak::Label loop, done;
        L(loop);
        for (unsigned row = 0; row < row_period; ++row) {
            code.starts_[row] = getCurr();
            move_row(row, rsi);
            add(rsi, rcx);
            dec(rdx);
            jz(done, T_NEAR);
        }
        add(rdi, row_period * shape.pitch);
        jmp(loop, T_NEAR);
        L(done);
        vzeroupper();
        ret();
        if (shape.bytes <= most_period_bytes) make_periods();
        ready();
        setProtectModeRE();
    }

    RowCode code;

private:
    static constexpr int outside = 13, keep = 14, rest = 15; ///< registers of RowFill
    static constexpr std::uint32_t most_period_bytes = 512;

    /// At most 24 bytes for each piece of 16, twice, and some for what is around.
    static std::size_t code_bytes(const RowShape& shape) {
        return 2048 + 2 * row_period * (std::size_t{shape.bytes} / 16 * 24 + 32);
    }

    /// Whole periods, without a count after each row: rows at rsi + 0 to 7 times rcx.
    void make_periods() {
        align(32);
        code.periods_ = getCurr<RowCode::Periods>();
        load_fill();
        lea(r9, ptr[rcx + rcx * 2]);
        lea(r10, ptr[rcx + rcx * 4]);
        lea(r11, ptr[r9 + rcx * 4]);
        const Xbyak::RegExp rows[row_period] = {rsi,           rsi + rcx, rsi + rcx * 2, rsi + r9,
                                                rsi + rcx * 4, rsi + r10, rsi + r9 * 2,  rsi + r11};
        Xbyak::Label loop;
        align(32);
        L(loop);
        for (unsigned row = 0; row < row_period; ++row) move_row(row, rows[row]);
        add(rdi, row_period * shape_.pitch);
        lea(rsi, ptr[rsi + rcx * 8]);
        dec(rdx);
        jnz(loop, T_NEAR);
        vzeroupper();
        ret();
    }

    void load_fill() {
        if (!shape_.cut() || shape_.store) return;
        if (wide_)
            vbroadcasti32x4(Xbyak::Zmm(outside), ptr[r8]);
        else
            vbroadcasti128(Xbyak::Ymm(outside), ptr[r8]);
        vmovdqu(Xbyak::Xmm(keep), ptr[r8 + 16]);
        vmovdqu(Xbyak::Xmm(rest), ptr[r8 + 32]);
    }

    enum class Piece { outside, inside, partial };
    Piece piece(std::uint32_t at) const {
        if (at < shape_.first || at >= shape_.last) return Piece::outside;
        return shape_.partial && at + 16 == shape_.last ? Piece::partial : Piece::inside;
    }

    /// Bytes from `at` on that move by one instruction.
    unsigned width(std::uint32_t at) const {
        for (unsigned bytes = wide_ ? 64 : 32; bytes > 16; bytes /= 2) {
            bool same = at % bytes == 0 && at + bytes <= shape_.bytes;
            for (unsigned i = 0; i < bytes && same; i += 16)
                same = piece(at + i) == piece(at) && piece(at) != Piece::partial;
            if (same) return bytes;
        }
        return 16;
    }

    /// Row number `row` of a period. The exchange is the same for all of it: it lies within one
    /// 128-byte line, and its pieces stay within its pitch.
    void move_row(unsigned row, const Xbyak::RegExp& tensor) {
        const unsigned exchange = swizzle_.exchange(row * shape_.pitch >> 7);
        for (std::uint32_t at = 0; at < shape_.bytes; at += width(at)) {
            const unsigned bytes = width(at);
            const std::uint32_t place = row * shape_.pitch + (at ^ (exchange & ~(bytes - 1)));
            const int number = static_cast<int>(at / 16 % 8);
            if (bytes == 64)
                move_part<Xbyak::Zmm>(number, at, place, tensor, exchange);
            else if (bytes == 32)
                move_part<Xbyak::Ymm>(number, at, place, tensor, exchange);
            else
                move_part<Xbyak::Xmm>(number, at, place, tensor, exchange);
        }
    }

    template <class Vector>
    void move_part(int number, std::uint32_t at, std::uint32_t place, const Xbyak::RegExp& row, unsigned exchange) {
        const auto tile = ptr[rdi + place], tensor = ptr[row + at];
        switch (piece(at)) {
        case Piece::inside: return move(Vector(number), tile, tensor, exchange);
        case Piece::outside: // the same whatever the exchange: 16-bit words
            if (!shape_.store) write(tile, Vector(outside));
            return;
        case Piece::partial: // a piece is aligned, so reading all of it leaves no page that the
                             // tensor has
            const Xbyak::Xmm data(number);
            vpand(data, Xbyak::Xmm(keep), tensor);
            vpor(data, data, Xbyak::Xmm(rest));
            permute(data, exchange);
            return write(tile, data);
        }
    }

    void write(const Xbyak::Address& place, const Xbyak::Zmm& data) { vmovdqu64(place, data); }
    template <class Vector> void write(const Xbyak::Address& place, const Vector& data) { vmovdqu(place, data); }

    void move(const Xbyak::Zmm& data, const Xbyak::Address& tile, const Xbyak::Address& tensor, unsigned exchange) {
        vmovdqu64(data, shape_.store ? tile : tensor);
        permute(data, exchange);
        vmovdqu64(shape_.store ? tensor : tile, data);
    }
    template <class Vector>
    void move(const Vector& data, const Xbyak::Address& tile, const Xbyak::Address& tensor, unsigned exchange) {
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
    return vectors != RowVectors::none && shape.bytes != 0 && shape.bytes % 16 == 0 && shape.bytes <= shape.pitch &&
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
