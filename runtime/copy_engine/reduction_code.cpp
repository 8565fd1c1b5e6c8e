// SPDX-License-Identifier: Apache-2.0
// The generator (xbyak). An access of 16 bytes is more than the element's atomicity that the memory
// model asks for, and holds against accesses of any size: the CPU locks the cache line for all.
#include "runtime/copy_engine/reduction_code.h"

#include "runtime/copy_engine/row_code.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <xbyak/xbyak.h>
#include <xbyak/xbyak_util.h>
#endif

namespace ptarmigan::runtime {

#if defined(__x86_64__)

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
    bit_xor
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
        constant(nan, is_small(kind) ? 0x7fff7fff : 0x7fffffff);
        if (kind == Kind::add_bf16) {
            constant(one, 1);
            constant(below_half, 0x7fff);
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
    static constexpr int value = 0, by = 1, mask = 2, other = 3, nan = 4, one = 5, below_half = 6;

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
        default: return add_small();
        }
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

template <Kind of_unsigned, Kind of_signed, BulkReduction operation> ReduceRun choose_run(TensorType type) {
    switch (type) {
    case TensorType::u32: return made<of_unsigned, operation, TensorType::u32, 4>();
    case TensorType::s32: return made<of_signed, operation, TensorType::s32, 4>();
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
    case min: return choose_run<Kind::min_u32, Kind::min_s32, min>(type);
    case max: return choose_run<Kind::max_u32, Kind::max_s32, max>(type);
    case bit_and: return bit_run<Kind::bit_and, bit_and>(type);
    case bit_or: return bit_run<Kind::bit_or, bit_or>(type);
    case bit_xor: return bit_run<Kind::bit_xor, bit_xor>(type);
    default: return nullptr;
    }
}

#else

ReduceRun reduce_run_generated(BulkReduction, TensorType) {
    return nullptr;
}

#endif

ReduceRun reduce_run(BulkReduction operation, TensorType type) {
    const ReduceRun generated = reduce_run_generated(operation, type);
    return generated ? generated : reduce_run_portably(operation, type);
}

} // namespace ptarmigan::runtime
