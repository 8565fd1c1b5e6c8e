// SPDX-License-Identifier: Apache-2.0
// The generator (xbyak): a period of rows unrolled, mostly eight, each with its own exchange of
// 16-byte pieces, and a way in at each of them. Whole rows move by the widest vectors, cut ones piece
// by piece.
#include "runtime/copy_engine/row_code.h"

#include "runtime/base/env.h"

#include <memory>
#include <mutex>
#include <unordered_map>

#include <xbyak/xbyak.h>
#include <xbyak/xbyak_util.h>

namespace ptarmigan::runtime {

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
          wide_(vectors == RowVectors::avx512), swizzle_(SwizzlePattern::of(shape.swizzle, shape.atom)),
          period_(row_period(shape.pitch, swizzle_)) {
        code.period_ = period_;
        code.entry_ = getCurr<RowCode::Entry>();
        load_constants();
        jmp(r9);
        Xbyak::Label loop, done;
        L(loop);
        for (unsigned row = 0; row < period_; ++row) {
            code.starts_[row] = getCurr();
            move_row(row, rsi);
            add(rsi, rcx);
            dec(rdx);
            jz(done, T_NEAR);
        }
        add(rdi, period_ * shape.pitch);
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
    static constexpr int one = 9, below_half = 10, kept_bits = 11, nan = 12; ///< registers of tf32's rounding
    static constexpr int outside = 13, keep = 14, rest = 15;                 ///< registers of RowFill
    static constexpr std::uint32_t most_period_bytes = 512;

    /// At most 24 bytes for each piece of 16, 96 if it changes, twice, and some for what is around.
    static std::size_t code_bytes(const RowShape& shape) {
        const unsigned period = row_period(shape.pitch, SwizzlePattern::of(shape.swizzle, shape.atom));
        const std::size_t piece = shape.change == RowChange::none ? 24 : 96;
        return 2048 + 2 * period * (std::size_t{shape.bytes} / 16 * piece + 32);
    }

    /// Whole periods, without a count after each row: rows at rsi + 0 to 7 times rcx.
    void make_periods() {
        align(32);
        code.periods_ = getCurr<RowCode::Periods>();
        load_constants();
        lea(r9, ptr[rcx + rcx * 2]);
        lea(r10, ptr[rcx + rcx * 4]);
        lea(r11, ptr[r9 + rcx * 4]);
        const Xbyak::RegExp rows[8] = {rsi,           rsi + rcx, rsi + rcx * 2, rsi + r9,
                                       rsi + rcx * 4, rsi + r10, rsi + r9 * 2,  rsi + r11};
        Xbyak::Label loop;
        align(32);
        L(loop);
        for (unsigned row = 0; row < period_; ++row) {
            move_row(row, rows[row % 8]);
            if (row % 8 == 7) lea(rsi, ptr[rsi + rcx * 8]);
        }
        add(rdi, period_ * shape_.pitch);
        dec(rdx);
        jnz(loop, T_NEAR);
        vzeroupper();
        ret();
    }

    void load_constants() {
        if (shape_.change == RowChange::round_tf32) {
            constant(one, 1);
            constant(below_half, 0xfff);
            constant(kept_bits, 0xffffe000);
            constant(nan, 0x7fffe000);
        }
        if (shape_.change == RowChange::pack_12) {
            constant(one, 0x3f3f3f3f);
            constant(below_half, 0x40014001); // bytes 1 and 64, twice
            constant(kept_bits, 0x10000001);  // words 1 and 4096
            mov(rax, 0x0908060504020100);     // three bytes of each four
            vmovq(Xbyak::Xmm(nan), rax);
            mov(rax, 0x808080800e0d0c0a);
            vpinsrq(Xbyak::Xmm(nan), Xbyak::Xmm(nan), rax, 1);
        }
        if (!shape_.cut() || shape_.store) return;
        if (wide_)
            vbroadcasti32x4(Xbyak::Zmm(outside), ptr[r8]);
        else
            vbroadcasti128(Xbyak::Ymm(outside), ptr[r8]);
        vmovdqu(Xbyak::Xmm(keep), ptr[r8 + 16]);
        vmovdqu(Xbyak::Xmm(rest), ptr[r8 + 32]);
    }

    void constant(int number, std::uint32_t bits) {
        mov(eax, bits);
        vmovd(Xbyak::Xmm(number), eax);
        if (wide_)
            vpbroadcastd(Xbyak::Zmm(number), Xbyak::Xmm(number));
        else
            vpbroadcastd(Xbyak::Ymm(number), Xbyak::Xmm(number));
    }

    enum class Piece { outside, inside, partial };
    Piece piece(std::uint32_t at) const {
        if (at < shape_.first || at >= shape_.last) return Piece::outside;
        return shape_.partial && at + 16 == shape_.last ? Piece::partial : Piece::inside;
    }

    /// Elements have other sizes in the tensor.
    bool resizes() const { return shape_.change > RowChange::round_tf32; }

    /// Bytes from `at` on that move by one instruction. Rows at multiples of 96 bytes cross lines of
    /// 128, and begin within 64; rounding is for 32.
    unsigned width(std::uint32_t at) const {
        if (resizes()) return 16;
        for (unsigned bytes = wide_ && shape_.swizzle != Swizzle::span_96 && shape_.change == RowChange::none ? 64 : 32;
             bytes > 16; bytes /= 2) {
            bool same = at % bytes == 0 && at + bytes <= shape_.bytes;
            for (unsigned i = 0; i < bytes && same; i += 16)
                same = piece(at + i) == piece(at) && piece(at) != Piece::partial;
            if (same) return bytes;
        }
        return 16;
    }

    /// Row number `row` of a period. A piece lies within one 128-byte line, which says how pieces
    /// are exchanged there.
    void move_row(unsigned row, const Xbyak::RegExp& tensor) {
        for (std::uint32_t at = 0; at < shape_.bytes; at += width(at)) {
            const unsigned bytes = width(at);
            const std::uint32_t plain = row * shape_.pitch + at;
            const unsigned exchange = swizzle_.exchange(plain >> 7);
            const std::uint32_t place = plain ^ (exchange & ~(bytes - 1));
            const int number = static_cast<int>(at / 16 % (shape_.change == RowChange::round_tf32 ? 3 : 8));
            if (bytes == 64)
                move_part<Xbyak::Zmm>(number, at, place, tensor, exchange);
            else if (bytes == 32)
                move_part<Xbyak::Ymm>(number, at, place, tensor, exchange);
            else if (resizes())
                resize(number, at, place, tensor);
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
            round(data);
            vpor(data, data, Xbyak::Xmm(rest));
            permute(data, exchange);
            return write(tile, data);
        }
    }

    /// Sixteen bytes of the tile, which are fewer in the tensor. Such rows lie inside altogether,
    /// and no half of a piece is flipped.
    void resize(int number, std::uint32_t at, std::uint32_t place, const Xbyak::RegExp& row) {
        const std::uint32_t packed = at / 16 * (shape_.change == RowChange::expand_8 ? 8 : 12);
        if (shape_.change == RowChange::pack_12) {
            const Xbyak::Xmm data(number);
            vpand(data, Xbyak::Xmm(one), ptr[rdi + place]);
            vpmaddubsw(data, data, Xbyak::Xmm(below_half)); // twelve bits in each 16
            vpmaddwd(data, data, Xbyak::Xmm(kept_bits));    // 24 in each 32
            vpshufb(data, data, Xbyak::Xmm(nan));
            vmovq(ptr[row + packed], data);
            vpextrd(ptr[row + packed + 8], data, 2);
            return;
        }
        mov(rax, ptr[row + packed]);
        mov(ptr[rdi + place], rax);
        if (shape_.change == RowChange::expand_8) return;
        mov(eax, ptr[row + packed + 8]);
        mov(ptr[rdi + place + 8], eax);
    }

    /// To tf32, if the shape asks for it; `data` is one of the first three registers. Infinities
    /// round to themselves.
    template <class Vector> void round(const Vector& data) {
        if (shape_.change != RowChange::round_tf32) return;
        const Vector odd(data.getIdx() + 3), nans(data.getIdx() + 6);
        vcmpunordps(nans, data, data);
        vpsrld(odd, data, 13);
        vpand(odd, odd, Vector(one));
        vpaddd(data, data, odd);
        vpaddd(data, data, Vector(below_half));
        vpand(data, data, Vector(kept_bits));
        vblendvps(data, data, Vector(nan), nans);
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
        round(data);
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
    unsigned period_;
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
    add(static_cast<std::uint64_t>(shape.change), 3);
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

} // namespace ptarmigan::runtime
