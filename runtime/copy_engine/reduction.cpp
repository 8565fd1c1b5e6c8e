// SPDX-License-Identifier: Apache-2.0
// One function per operation and type. What the units do with NaNs and subnormals is recorded:
// tests/recordings/async_copies.
#include "runtime/copy_engine/reduction.h"

#include "runtime/base/processor.h"
#include "runtime/copy_engine/reduction_code.h"

#include <bit>
#include <cmath>
#include <type_traits>

namespace ptarmigan::runtime {
namespace {

struct Half {
    using Bits = std::uint16_t;
    static constexpr Bits nan = 0x7fff;
    static float widen(Bits bits) { return static_cast<float>(std::bit_cast<float16>(bits)); }
    static Bits narrow(float value) { return std::bit_cast<Bits>(static_cast<float16>(value)); }
};

struct Brain {
    using Bits = std::uint16_t;
    static constexpr Bits nan = 0x7fff;
    static float widen(Bits bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
    static Bits narrow(float value) {
        const auto bits = std::bit_cast<std::uint32_t>(value);
        return static_cast<Bits>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
};

/// The manual says that subnormals are flushed; the H200 keeps them.
struct AddFloat {
    using Bits = std::uint32_t;
    static Bits apply(Bits old, Bits by) {
        const float sum = std::bit_cast<float>(old) + std::bit_cast<float>(by);
        return std::isnan(sum) ? 0x7fffffff : std::bit_cast<Bits>(sum);
    }
};

float flushed(float value) {
    return std::abs(value) < 0x1p-126f ? std::copysign(0.0f, value) : value;
}

struct AddFlushedFloat {
    using Bits = std::uint32_t;
    static Bits apply(Bits old, Bits by) {
        const float sum = flushed(std::bit_cast<float>(old)) + flushed(std::bit_cast<float>(by));
        return std::isnan(sum) ? 0x7fffffff : std::bit_cast<Bits>(flushed(sum));
    }
};

/// Of NaNs the source's survives, else the target's, signalling ones too: as atom does in global memory.
struct AddDouble {
    using Bits = std::uint64_t;
    static Bits apply(Bits old, Bits by) {
        const double a = std::bit_cast<double>(old), b = std::bit_cast<double>(by);
        if (std::isnan(b)) return by;
        return std::isnan(a) ? old : std::isnan(a + b) ? 0xfff8000000000000 : std::bit_cast<Bits>(a + b);
    }
};

template <class Format> struct AddSmall {
    using Bits = typename Format::Bits;
    static Bits apply(Bits old, Bits by) {
        const float sum = Format::widen(old) + Format::widen(by);
        return std::isnan(sum) ? Format::nan : Format::narrow(sum);
    }
};

/// A number wins over a NaN; -0 is less than +0.
template <class Format, bool greater> struct ChooseSmall {
    using Bits = typename Format::Bits;
    static Bits apply(Bits old, Bits by) {
        const float a = Format::widen(old), b = Format::widen(by);
        if (std::isnan(a)) return std::isnan(b) ? Format::nan : by;
        if (std::isnan(b)) return old;
        const bool less = a < b || (a == b && std::signbit(a) && !std::signbit(b));
        return less == greater ? by : old;
    }
};

template <class T> struct Add {
    using Bits = T;
    static T apply(T old, T by) { return old + by; }
};
template <class T, bool greater> struct Choose {
    using Bits = std::make_unsigned_t<T>;
    static Bits apply(Bits old, Bits by) { return (static_cast<T>(by) > static_cast<T>(old)) == greater ? by : old; }
};
struct Increment {
    using Bits = std::uint32_t;
    static Bits apply(Bits old, Bits by) { return old >= by ? 0 : old + 1; }
};
struct Decrement {
    using Bits = std::uint32_t;
    static Bits apply(Bits old, Bits by) { return old == 0 || old > by ? by : old - 1; }
};
template <class T> struct And {
    using Bits = T;
    static T apply(T old, T by) { return old & by; }
};
template <class T> struct Or {
    using Bits = T;
    static T apply(T old, T by) { return old | by; }
};
template <class T> struct Xor {
    using Bits = T;
    static T apply(T old, T by) { return old ^ by; }
};

template <class Operation> void run(std::uint8_t* target, const std::uint8_t* source, std::size_t count) {
    using Bits = typename Operation::Bits;
    for (std::size_t i = 0; i < count; ++i) {
        Bits by;
        std::memcpy(&by, source + i * sizeof by, sizeof by);
        auto* place = reinterpret_cast<Bits*>(target + i * sizeof by);
        Bits old = __atomic_load_n(place, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(place, &old, Operation::apply(old, by), true, __ATOMIC_RELAXED,
                                            __ATOMIC_RELAXED)) {
        }
    }
}

template <bool greater> ReduceRun choose_run(TensorType type) {
    switch (type) {
    case TensorType::u32: return run<Choose<std::uint32_t, greater>>;
    case TensorType::s32: return run<Choose<std::int32_t, greater>>;
    case TensorType::u64: return run<Choose<std::uint64_t, greater>>;
    case TensorType::s64: return run<Choose<std::int64_t, greater>>;
    case TensorType::f16: return run<ChooseSmall<Half, greater>>;
    case TensorType::bf16: return run<ChooseSmall<Brain, greater>>;
    default: return nullptr;
    }
}

ReduceRun add_run(TensorType type) {
    switch (type) {
    case TensorType::u32:
    case TensorType::s32: return run<Add<std::uint32_t>>;
    case TensorType::u64: return run<Add<std::uint64_t>>;
    case TensorType::f32:
    case TensorType::tf32: return run<AddFloat>;
    case TensorType::f32_ftz:
    case TensorType::tf32_ftz: return run<AddFlushedFloat>;
    case TensorType::f64: return run<AddDouble>;
    case TensorType::f16: return run<AddSmall<Half>>;
    case TensorType::bf16: return run<AddSmall<Brain>>;
    default: return nullptr;
    }
}

/// Of integers; s64 is none of them for the H200, nor for additions.
template <template <class> class Operation> ReduceRun bit_run(TensorType type) {
    switch (type) {
    case TensorType::u32:
    case TensorType::s32: return run<Operation<std::uint32_t>>;
    case TensorType::u64: return run<Operation<std::uint64_t>>;
    default: return nullptr;
    }
}

} // namespace

ReduceRun reduce_run_portably(BulkReduction operation, TensorType type) {
    switch (operation) {
    case BulkReduction::add: return add_run(type);
    case BulkReduction::min: return choose_run<false>(type);
    case BulkReduction::max: return choose_run<true>(type);
    case BulkReduction::inc: return type == TensorType::u32 ? run<Increment> : nullptr;
    case BulkReduction::dec: return type == TensorType::u32 ? run<Decrement> : nullptr;
    case BulkReduction::bit_and: return bit_run<And>(type);
    case BulkReduction::bit_or: return bit_run<Or>(type);
    case BulkReduction::bit_xor: return bit_run<Xor>(type);
    }
    return nullptr;
}

ReduceRun reduce_run(BulkReduction operation, TensorType type) {
    const ReduceRun generated = reduce_run_generated(operation, type);
    return generated ? generated : reduce_run_portably(operation, type);
}

} // namespace ptarmigan::runtime
