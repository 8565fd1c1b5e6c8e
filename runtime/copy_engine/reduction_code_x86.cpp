// SPDX-License-Identifier: Apache-2.0
// The generator (xbyak). An access of 16 bytes is more than the element's atomicity that the memory
// model asks for, and holds against accesses of any size: the CPU locks the cache line for all.
#include "runtime/copy_engine/reduction_code.h"

#include "runtime/copy_engine/row_code.h"

#include <cpuid.h>
#include <xbyak/xbyak.h>
#include <xbyak/xbyak_util.h>

namespace ptarmigan::runtime {

namespace {

enum class Kind : std::uint8_t {
    add_32,
    add_64,
    add_f32,
    add_f16,
    add_bf16,
    min_u32,
    max_u32,
    min_s32,
    max_s32,
    bit_and,
    bit_or,
    bit_xor,
    inc,
    dec,
    add_f64,
    add_f32_ftz,
    min_u64,
    max_u64,
    min_s64,
    max_s64,
    min_f16,
    max_f16,
    min_bf16,
    max_bf16
};

constexpr bool is_small(Kind kind) {
    return kind == Kind::add_f16 || kind == Kind::add_bf16;
}

/// Pieces of 16 bytes, aligned in the target.
using ReducePieces = void (*)(std::uint8_t* target, const std::uint8_t* source, std::size_t pieces);

class ReductionGenerator : Xbyak::CodeGenerator {
public:
    explicit ReductionGenerator(Kind kind) : CodeGenerator(1024, Xbyak::DontSetProtectRWE), kind_(kind) {
        code = getCurr<ReducePieces>();
        push(rbx); // with rcx what cmpxchg16b writes, rdx and rax what it expects
        mov(r8, rdx);
        // The NaN of sums: 0x7fffffff, or 0x7fff twice.
        constant(nan, is_small(kind) || kind >= Kind::min_f16 ? 0x7fff7fff : 0x7fffffff);
        if (kind == Kind::add_bf16) {
            constant(one, 1);
            constant(below_half, 0x7fff);
        }
        if (kind == Kind::inc || kind == Kind::dec) vpcmpeqd(Xbyak::Xmm(one), Xbyak::Xmm(one), Xbyak::Xmm(one)); // -1
        if (kind == Kind::add_f32_ftz) {
            constant(infinity, 0x00800000); // the least normal number
            constant(sign, 0x80000000);
        }
        if (kind == Kind::min_f16 || kind == Kind::max_f16) constant(infinity, 0x7c007c00);
        if (kind == Kind::min_bf16 || kind == Kind::max_bf16) constant(infinity, 0x7f807f80);
        if (kind == Kind::min_u64 || kind == Kind::max_u64) {
            mov(rax, 0x8000000000000000);
            vmovq(Xbyak::Xmm(sign), rax);
            vpunpcklqdq(Xbyak::Xmm(sign), Xbyak::Xmm(sign), Xbyak::Xmm(sign));
        }
        Xbyak::Label next, again;
        L(next);
        vmovdqu(Xbyak::Xmm(by), ptr[rsi]);
        widen(by);
        // Two loads: if somebody writes between them, the exchange fails and loads what is there.
        mov(rax, ptr[rdi]);
        mov(rdx, ptr[rdi + 8]);
        L(again);
        vmovq(Xbyak::Xmm(value), rax);
        vpinsrq(Xbyak::Xmm(value), Xbyak::Xmm(value), rdx, 1);
        widen(value);
        combine();
        vmovq(rbx, Xbyak::Xmm(value));
        vpextrq(rcx, Xbyak::Xmm(value), 1);
        lock();
        cmpxchg16b(ptr[rdi]);
        jnz(again);
        add(rdi, 16);
        add(rsi, 16);
        dec(r8);
        jnz(next, T_NEAR);
        vzeroupper();
        pop(rbx);
        ret();
        ready();
        setProtectModeRE();
    }

    ReducePieces code;

private:
    static constexpr int value = 0, by = 1, mask = 2, other = 3, nan = 4, one = 5, below_half = 6, infinity = 7,
                         sign = 8, third = 9;

    void constant(int vector, std::uint32_t bits) {
        mov(eax, bits);
        vmovd(Xbyak::Xmm(vector), eax);
        vpbroadcastd(Xbyak::Ymm(vector), Xbyak::Xmm(vector));
    }

    /// Elements of 16 bits to f32.
    void widen(int vector) {
        const Xbyak::Ymm wide(vector);
        if (kind_ == Kind::add_f16) vcvtph2ps(wide, Xbyak::Xmm(vector));
        if (kind_ == Kind::add_bf16) {
            vpmovzxwd(wide, Xbyak::Xmm(vector));
            vpslld(wide, wide, 16);
        }
    }

    void combine() {
        const Xbyak::Xmm to(value), from(by);
        switch (kind_) {
        case Kind::add_32: return vpaddd(to, to, from);
        case Kind::add_64: return vpaddq(to, to, from);
        case Kind::min_u32: return vpminud(to, to, from);
        case Kind::max_u32: return vpmaxud(to, to, from);
        case Kind::min_s32: return vpminsd(to, to, from);
        case Kind::max_s32: return vpmaxsd(to, to, from);
        case Kind::bit_and: return vpand(to, to, from);
        case Kind::bit_or: return vpor(to, to, from);
        case Kind::bit_xor: return vpxor(to, to, from);
        case Kind::add_f32:
            vaddps(to, to, from);
            vcmpunordps(Xbyak::Xmm(mask), to, to);
            return vblendvps(to, to, Xbyak::Xmm(nan), Xbyak::Xmm(mask));
        case Kind::add_f64: // NaNs as they are
            vcmpunordpd(Xbyak::Xmm(mask), to, to);
            vcmpunordpd(Xbyak::Xmm(third), from, from);
            vaddpd(Xbyak::Xmm(other), to, from);
            vblendvpd(to, Xbyak::Xmm(other), to, Xbyak::Xmm(mask));
            return vblendvpd(to, to, from, Xbyak::Xmm(third));
        case Kind::add_f32_ftz:
            flush(value);
            flush(by);
            vaddps(to, to, from);
            vcmpunordps(Xbyak::Xmm(third), to, to);
            flush(value);
            return vblendvps(to, to, Xbyak::Xmm(nan), Xbyak::Xmm(third));
        case Kind::inc: // 0 where max(old, by) is old, else old + 1
            vpmaxud(Xbyak::Xmm(mask), to, from);
            vpcmpeqd(Xbyak::Xmm(mask), Xbyak::Xmm(mask), to);
            vpsubd(to, to, Xbyak::Xmm(one));
            return vpandn(to, Xbyak::Xmm(mask), to);
        case Kind::dec: { // old - 1 where min(old, by) is old and old is not 0, else by
            const Xbyak::Xmm less(mask), zero(other);
            vpminud(less, to, from);
            vpcmpeqd(less, less, to);
            vpxor(zero, zero, zero);
            vpcmpeqd(zero, zero, to);
            vpandn(less, zero, less);
            vpaddd(to, to, Xbyak::Xmm(one));
            return vblendvps(to, from, to, less);
        }
        case Kind::min_u64:
        case Kind::max_u64:
        case Kind::min_s64:
        case Kind::max_s64: return choose_64();
        case Kind::min_f16:
        case Kind::max_f16:
        case Kind::min_bf16:
        case Kind::max_bf16: return choose_small();
        default: return add_small();
        }
    }

    /// Subnormal f32 become zeros of their sign.
    void flush(int vector) {
        const Xbyak::Xmm data(vector), small(mask), zero(other);
        vpslld(small, data, 1);
        vpsrld(small, small, 1);
        vpcmpgtd(small, Xbyak::Xmm(infinity), small);
        vpand(zero, data, Xbyak::Xmm(sign));
        vblendvps(data, data, zero, small);
    }

    void choose_64() {
        const Xbyak::Xmm to(value), from(by), more(mask), place(other);
        if (kind_ == Kind::min_u64 || kind_ == Kind::max_u64) {
            vpxor(more, from, Xbyak::Xmm(sign));
            vpxor(place, to, Xbyak::Xmm(sign));
            vpcmpgtq(more, more, place);
        } else {
            vpcmpgtq(more, from, to);
        }
        if (kind_ == Kind::max_u64 || kind_ == Kind::max_s64)
            vblendvpd(to, to, from, more);
        else
            vblendvpd(to, from, to, more);
    }

    /// Small floats are ordered as integers are whose lower bits are inverted where they are
    /// negative: -0 below +0. A number wins over a NaN.
    void choose_small() {
        const Xbyak::Xmm to(value), from(by), less(mask), key(other), key_from(third), top(infinity), no_sign(nan);
        vpsraw(key, to, 15);
        vpand(key, key, no_sign);
        vpxor(key, key, to);
        vpsraw(key_from, from, 15);
        vpand(key_from, key_from, no_sign);
        vpxor(key_from, key_from, from);
        vpcmpgtw(less, key_from, key); // the target is less
        const Xbyak::Xmm nan_to(key), nan_from(key_from);
        vpand(nan_to, to, no_sign);
        vpcmpgtw(nan_to, nan_to, top);
        vpand(nan_from, from, no_sign);
        vpcmpgtw(nan_from, nan_from, top);
        const Xbyak::Xmm chosen(below_half);
        if (kind_ == Kind::max_f16 || kind_ == Kind::max_bf16)
            vpblendvb(chosen, to, from, less);
        else
            vpblendvb(chosen, from, to, less);
        vpblendvb(chosen, chosen, to, nan_from);
        vpblendvb(to, chosen, from, nan_to);
        vpand(nan_to, nan_to, nan_from);
        vpblendvb(to, to, no_sign, nan_to);
    }

    void add_small() {
        const Xbyak::Ymm sum(value), nans(mask), part(other);
        const Xbyak::Xmm to(value), upper(other);
        vaddps(sum, sum, Xbyak::Ymm(by));
        vcmpunordps(nans, sum, sum);
        if (kind_ == Kind::add_f16) {
            vcvtps2ph(to, sum, 0); // to nearest even
        } else {
            vpsrld(part, sum, 16);
            vpand(part, part, Xbyak::Ymm(one));
            vpaddd(sum, sum, part);
            vpaddd(sum, sum, Xbyak::Ymm(below_half));
            vpsrld(sum, sum, 16);
            vextracti128(upper, sum, 1);
            vpackusdw(to, to, upper);
        }
        vextracti128(upper, nans, 1);
        vpackssdw(Xbyak::Xmm(mask), Xbyak::Xmm(mask), upper);
        vpblendvb(to, to, Xbyak::Xmm(nan), Xbyak::Xmm(mask));
    }

    Kind kind_;
};

bool has_vectors() {
    const Xbyak::util::Cpu cpu;
    unsigned a = 0, b = 0, c = 0, d = 0;
    return row_vectors() != RowVectors::none && cpu.has(Xbyak::util::Cpu::tF16C) &&
           __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_CMPXCHG16B) != 0;
}

/// Never destroyed: kernels may run until the process ends.
template <Kind kind> ReducePieces pieces_of() {
    static const auto* generator = new ReductionGenerator(kind);
    return generator->code;
}

/// What is no whole piece is done element by element, as is all of a target that is not aligned.
template <Kind kind, BulkReduction operation, TensorType type, std::size_t size>
void run(std::uint8_t* target, const std::uint8_t* source, std::size_t count) {
    std::size_t done = 0;
    if (reinterpret_cast<std::uintptr_t>(target) % 16 == 0) {
        const std::size_t pieces = count * size / 16;
        if (pieces != 0) pieces_of<kind>()(target, source, pieces);
        done = pieces * 16 / size;
    }
    if (done != count) reduce_run_portably(operation, type)(target + done * size, source + done * size, count - done);
}

template <Kind kind, BulkReduction operation, TensorType type, std::size_t size> ReduceRun made() {
    pieces_of<kind>();
    return run<kind, operation, type, size>;
}

template <Kind kind, BulkReduction operation> ReduceRun bit_run(TensorType type) {
    switch (type) {
    case TensorType::u32:
    case TensorType::s32: return made<kind, operation, TensorType::u32, 4>();
    case TensorType::u64: return made<kind, operation, TensorType::u64, 8>();
    default: return nullptr;
    }
}

ReduceRun min_run(TensorType type) {
    constexpr auto min = BulkReduction::min;
    switch (type) {
    case TensorType::u32: return made<Kind::min_u32, min, TensorType::u32, 4>();
    case TensorType::s32: return made<Kind::min_s32, min, TensorType::s32, 4>();
    case TensorType::u64: return made<Kind::min_u64, min, TensorType::u64, 8>();
    case TensorType::s64: return made<Kind::min_s64, min, TensorType::s64, 8>();
    case TensorType::f16: return made<Kind::min_f16, min, TensorType::f16, 2>();
    case TensorType::bf16: return made<Kind::min_bf16, min, TensorType::bf16, 2>();
    default: return nullptr;
    }
}

ReduceRun max_run(TensorType type) {
    constexpr auto max = BulkReduction::max;
    switch (type) {
    case TensorType::u32: return made<Kind::max_u32, max, TensorType::u32, 4>();
    case TensorType::s32: return made<Kind::max_s32, max, TensorType::s32, 4>();
    case TensorType::u64: return made<Kind::max_u64, max, TensorType::u64, 8>();
    case TensorType::s64: return made<Kind::max_s64, max, TensorType::s64, 8>();
    case TensorType::f16: return made<Kind::max_f16, max, TensorType::f16, 2>();
    case TensorType::bf16: return made<Kind::max_bf16, max, TensorType::bf16, 2>();
    default: return nullptr;
    }
}

ReduceRun add_run(TensorType type) {
    constexpr auto add = BulkReduction::add;
    switch (type) {
    case TensorType::u32:
    case TensorType::s32: return made<Kind::add_32, add, TensorType::u32, 4>();
    case TensorType::u64: return made<Kind::add_64, add, TensorType::u64, 8>();
    case TensorType::f32:
    case TensorType::tf32: return made<Kind::add_f32, add, TensorType::f32, 4>();
    case TensorType::f16: return made<Kind::add_f16, add, TensorType::f16, 2>();
    case TensorType::bf16: return made<Kind::add_bf16, add, TensorType::bf16, 2>();
    case TensorType::f64: return made<Kind::add_f64, add, TensorType::f64, 8>();
    case TensorType::f32_ftz:
    case TensorType::tf32_ftz: return made<Kind::add_f32_ftz, add, TensorType::f32_ftz, 4>();
    default: return nullptr;
    }
}

} // namespace

ReduceRun reduce_run_generated(BulkReduction operation, TensorType type) {
    static const bool can_generate = has_vectors();
    if (!can_generate) return nullptr;
    using enum BulkReduction;
    switch (operation) {
    case add: return add_run(type);
    case min: return min_run(type);
    case max: return max_run(type);
    case inc: return type == TensorType::u32 ? made<Kind::inc, inc, TensorType::u32, 4>() : nullptr;
    case dec: return type == TensorType::u32 ? made<Kind::dec, dec, TensorType::u32, 4>() : nullptr;
    case bit_and: return bit_run<Kind::bit_and, bit_and>(type);
    case bit_or: return bit_run<Kind::bit_or, bit_or>(type);
    case bit_xor: return bit_run<Kind::bit_xor, bit_xor>(type);
    default: return nullptr;
    }
}

} // namespace ptarmigan::runtime
