// SPDX-License-Identifier: Apache-2.0
// The generator (xbyak): eight rows unrolled, each with its own exchange of 16-byte pieces, and a way in at each of them.
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

constexpr std::size_t code_bytes = 32768;

RowVectors detect() {
    const Xbyak::util::Cpu cpu;
    using Xbyak::util::Cpu;
    const std::string target = env_text(Env::target);
    const bool narrow = target == "x86-64-v3";
    if (!narrow && cpu.has(Cpu::tAVX512F) && cpu.has(Cpu::tAVX512BW) && cpu.has(Cpu::tAVX512VL) && cpu.has(Cpu::tAVX512DQ))
        return RowVectors::avx512;
    return cpu.has(Cpu::tAVX2) ? RowVectors::avx2 : RowVectors::none;
}

} // namespace

class RowGenerator : Xbyak::CodeGenerator {
public:
    RowGenerator(const RowShape &shape, RowVectors vectors)
        : CodeGenerator(code_bytes, Xbyak::DontSetProtectRWE), shape_(shape), wide_(vectors == RowVectors::avx512),
          swizzle_(SwizzlePattern::of(shape.swizzle, shape.atom)) {
        code.entry_ = getCurr<RowCode::Entry>();
        if (shape.masked)
            load_masks();
        jmp(r9);
        Xbyak::Label loop, done;
        L(loop);
        for (unsigned row = 0; row < row_period; ++row) {
            code.starts_[row] = getCurr();
            move_row(row);
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
    /// Mask of block b in k(b + 1), what fills in zmm31.
    void load_masks() {
        for (unsigned block = 0; block * 64 < shape_.bytes; ++block)
            kmovq(Xbyak::Opmask(static_cast<int>(block) + 1), ptr[r8 + block * 8]);
        vmovdqu8(zmm31, ptr[r8 + offsetof(RowMask, fill)]);
    }

    /// The exchange is the same for a whole row: a row lies within one 128-byte line, and its pieces stay within its pitch.
    void move_row(unsigned row) {
        const unsigned exchange = swizzle_.exchange(row * shape_.pitch >> 7);
        for (std::uint32_t at = 0; at < shape_.bytes;) {
            const std::uint32_t left = shape_.bytes - at;
            const unsigned width = wide_ && (left >= 64 || shape_.masked) ? 64 : left >= 32 ? 32 : 16;
            const std::uint32_t place = row * shape_.pitch + (at ^ (exchange & ~(width - 1)));
            move(at, place, width, exchange & (width - 1));
            at += width;
        }
    }

    void move(std::uint32_t at, std::uint32_t place, unsigned width, unsigned exchange) {
        const auto tile = ptr[rdi + place], tensor = ptr[rsi + at];
        const int number = static_cast<int>(at / 16 % 16);
        const Xbyak::Opmask mask(static_cast<int>(at / 64) + 1);
        if (width == 64) {
            const Xbyak::Zmm data(number);
            if (shape_.store) {
                vmovdqu64(data, tile);
                permute(data, exchange);
                if (shape_.masked)
                    vmovdqu8(tensor | mask, data);
                else
                    vmovdqu64(tensor, data);
                return;
            }
            if (shape_.masked) {
                vmovdqa64(data, zmm31);
                vmovdqu8(data | mask, tensor);
            } else {
                vmovdqu64(data, tensor);
            }
            permute(data, exchange);
            store_tile(data, at, place);
        } else if (width == 32) {
            const Xbyak::Ymm data(number);
            vmovdqu(data, shape_.store ? tile : tensor);
            if ((exchange & 16) != 0)
                vpermq(data, data, 0x4e);
            if ((exchange & 8) != 0)
                vpermilpd(data, data, 0x5);
            vmovdqu(shape_.store ? tensor : tile, data);
        } else {
            const Xbyak::Xmm data(number);
            vmovdqu(data, shape_.store ? tile : tensor);
            if ((exchange & 8) != 0)
                vpermilpd(data, data, 0x1);
            vmovdqu(shape_.store ? tensor : tile, data);
        }
    }

    void permute(const Xbyak::Zmm &data, unsigned exchange) {
        if (const unsigned pieces = exchange >> 4; pieces != 0) {
            unsigned order = 0;
            for (unsigned i = 0; i < 4; ++i)
                order |= (i ^ pieces) << 2 * i;
            vshufi64x2(data, data, data, static_cast<std::uint8_t>(order));
        }
        if ((exchange & 8) != 0)
            vpermilpd(data, data, 0x55);
    }

    /// Of a last block that is not 64 bytes long, only the pieces that the row has; they stand permuted.
    void store_tile(const Xbyak::Zmm &data, std::uint32_t at, std::uint32_t place) {
        const std::uint32_t bytes = shape_.bytes - at;
        if (bytes >= 64) {
            vmovdqu64(ptr[rdi + place], data);
            return;
        }
        const unsigned row = place / shape_.pitch, exchange = swizzle_.exchange(row * shape_.pitch >> 7) & 63;
        std::uint64_t wanted = 0;
        for (unsigned i = 0; i < bytes; ++i)
            wanted |= std::uint64_t{1} << (i ^ exchange);
        mov(rax, wanted);
        kmovq(k7, rax);
        vmovdqu8(ptr[rdi + place] | k7, data);
    }

    RowShape shape_;
    bool wide_;
    SwizzlePattern swizzle_;
};

namespace {

/// A store of masked rows reads whole blocks of 64 bytes of the tile: they must be in the row's pitch.
bool can_generate(const RowShape &shape, RowVectors vectors) {
    if (vectors == RowVectors::none || shape.bytes == 0 || shape.bytes % 16 != 0 || shape.bytes > most_row_bytes || shape.bytes > shape.pitch)
        return false;
    if (!shape.masked)
        return true;
    // k7 holds the last block's pieces.
    return vectors == RowVectors::avx512 && shape.bytes <= most_masked_bytes - 64 && (!shape.store || shape.bytes % 64 == 0) &&
           (shape.swizzle == Swizzle::none || shape.pitch % 64 == 0);
}

std::uint64_t key_of(const RowShape &shape, RowVectors vectors) {
    return std::uint64_t{shape.bytes} | std::uint64_t{shape.pitch} << 16 | std::uint64_t(shape.swizzle) << 32 |
           std::uint64_t(shape.atom) << 36 | std::uint64_t{shape.store} << 40 | std::uint64_t{shape.masked} << 41 |
           std::uint64_t(vectors) << 42 | std::uint64_t{1} << 63;
}

struct Table {
    std::mutex mutex;
    std::unordered_map<std::uint64_t, std::unique_ptr<RowGenerator>> codes;
    static Table &get() {
        static auto *table = new Table; // never destroyed: kernels may run until the process ends
        return *table;
    }
};

} // namespace

RowVectors row_vectors() {
    static const RowVectors vectors = detect();
    return vectors;
}

const RowCode *row_code(const RowShape &shape, RowVectors vectors) {
    if (!can_generate(shape, vectors))
        return nullptr;
    const std::uint64_t key = key_of(shape, vectors);
    struct Recent {
        std::uint64_t key = 0;
        const RowCode *code = nullptr;
    };
    thread_local std::array<Recent, 16> recent;
    Recent &last = recent[(key ^ key >> 16 ^ key >> 32 ^ key >> 40) % recent.size()];
    if (last.key == key)
        return last.code;
    Table &table = Table::get();
    std::lock_guard lock(table.mutex);
    std::unique_ptr<RowGenerator> &made = table.codes[key];
    if (!made)
        made = std::make_unique<RowGenerator>(shape, vectors);
    last = {key, &made->code};
    return last.code;
}

#else

RowVectors row_vectors() { return RowVectors::none; }
const RowCode *row_code(const RowShape &, RowVectors) { return nullptr; }

#endif

} // namespace ptarmigan::runtime
