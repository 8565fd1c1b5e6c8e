// SPDX-License-Identifier: Apache-2.0
// The builtins as plain C++: the special function unit against checksums recorded on an H200, double arithmetic in
// directed modes against the host's unit. Arguments: check every n-th block of 2^23 inputs; of functions of this name.
#include "runtime/texture/reciprocal.h"
#include "translator/builtins/library/double_rounding.cpp"
#include "translator/builtins/library/sfu.cpp"

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iterator>
#include <random>
#include <vector>

namespace {

using u32 = unsigned;
using u64 = unsigned long;

constexpr int lanes = 16;
unsigned failures = 0;

template <typename T> std::vector<T> read_file(const char* path, std::size_t count) {
    std::vector<T> data(count);
    std::FILE* file = std::fopen(path, "rb");
    if (!file || std::fread(data.data(), sizeof(T), count, file) != count) {
        std::fprintf(stderr, "can't read %s\n", path);
        std::exit(2);
    }
    std::fclose(file);
    return data;
}

using Function = I32<lanes> (*)(I32<lanes>);

template <F32<lanes> function(F32<lanes>)> I32<lanes> single(I32<lanes> inputs) {
    return bits<lanes>(function(real<lanes>(inputs)));
}

// High words in, and the hash of both words of the result out.
I32<lanes> rsqrt_f64(I32<lanes> inputs) {
    I32<lanes> hashes;
    for (int half = 0; half < lanes; half += 8) {
        F64<8> operands, estimates;
        for (int i = 0; i < 8; ++i) operands[i] = to_double(u64(u32(inputs[half + i])) << 32);
        F64<8> scaled = ptm_rsqrt_operand_f64_8(operands);
        I32<8> high;
        for (int i = 0; i < 8; ++i) high[i] = int(to_bits(scaled[i]) >> 32);
        high = ptm_rsqrt_high_8(high);
        for (int i = 0; i < 8; ++i) estimates[i] = to_double(u64(u32(high[i])) << 32);
        F64<8> results = ptm_rsqrt_refined_f64_8(operands, estimates);
        for (int i = 0; i < 8; ++i)
            hashes[half + i] = int(u32(to_bits(results[i]) >> 32) + u32(to_bits(results[i])) * 0x9e3779b1u);
    }
    return hashes;
}

struct Recorded {
    const char* name;
    Function function;
};
const Recorded recorded[] = { // in the order of the recording
    {"rcp.ftz", single<ptm_rcp_ftz_f32_16>},      {"rsqrt.ftz", single<ptm_rsqrt_ftz_f32_16>},
    {"sqrt.ftz", single<ptm_sqrt_ftz_f32_16>},    {"ex2.ftz", single<ptm_ex2_ftz_f32_16>},
    {"lg2.ftz", single<ptm_lg2_ftz_f32_16>},      {"sin.ftz", single<ptm_sin_ftz_f32_16>},
    {"cos.ftz", single<ptm_cos_ftz_f32_16>},      {"tanh", single<ptm_tanh_f32_16>},
    {"rcp", single<ptm_rcp_f32_16>},              {"rsqrt", single<ptm_rsqrt_f32_16>},
    {"sqrt", single<ptm_sqrt_f32_16>},            {"ex2", single<ptm_ex2_f32_16>},
    {"lg2", single<ptm_lg2_f32_16>},              {"sin", single<ptm_sin_f32_16>},
    {"cos", single<ptm_cos_f32_16>},              {"rcp.ftz.f64", ptm_rcp_high_16},
    {"rsqrt.ftz.f64", ptm_rsqrt_high_16},         {"rsqrt.f64", rsqrt_f64},
};

bool block_matches(Function function, u32 block, const u64* sums) {
    using Words = Lanes<u32, lanes>;
    using Sums = Lanes<u64, lanes>;
    const Words lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    Sums plain{}, weighted{}, weight = __builtin_convertvector(2 * lane + 1, Sums);
    for (u32 first = 0; first < 1u << 23; first += lanes) {
        I32<lanes> results = function(__builtin_bit_cast(I32<lanes>, lane + (block << 23 | first)));
        Sums words = __builtin_convertvector(__builtin_bit_cast(Words, results), Sums);
        plain += words;
        weighted += words * weight;
        weight += u64(2 * lanes);
    }
    u64 total = 0, weighted_total = 0;
    for (int i = 0; i < lanes; ++i) {
        total += plain[i];
        weighted_total += weighted[i];
    }
    return total == sums[0] && weighted_total == sums[1];
}

/// The texture unit's reciprocal, number by number.
I32<lanes> texture_reciprocal(I32<lanes> inputs) {
    I32<lanes> results;
    for (int i = 0; i < lanes; ++i)
        results[i] = std::bit_cast<int>(ptarmigan::runtime::unit_reciprocal(std::bit_cast<float>(int(inputs[i]))));
    return results;
}

void check_texture_reciprocal(u32 step) {
    std::vector<u64> sums = read_file<u64>(TEST_DATA "/h200_sums.bin", 18 * 512 * 2);
    u32 wrong = 0;
    for (u32 block = step > 1 ? 127 % step : 0; block < 512; block += step)
        wrong += !block_matches(texture_reciprocal, block, &sums[block * 2]);
    std::printf("texture's rcp  %u blocks differ\n", wrong);
    failures += wrong;
}

double cpu_seconds() {
    std::timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

void check_recorded(u32 step, const char* only) {
    std::vector<u64> sums = read_file<u64>(TEST_DATA "/h200_sums.bin", 18 * 512 * 2);
    for (u32 index = 0; index < std::size(recorded); ++index) {
        const Recorded& entry = recorded[index];
        if (only && std::strcmp(only, entry.name) != 0) continue;
        u32 wrong = 0, checked = 0;
        double start = cpu_seconds();
        // A different set of blocks for each function, so that the sample covers more exponents.
        for (u32 block = step > 1 ? (index * 29 + 127) % step : 0; block < 512; block += step, ++checked)
            wrong += !block_matches(entry.function, block, &sums[(index * 512 + block) * 2]);
        double time = (cpu_seconds() - start) / (checked * double(1 << 23) / lanes);
        std::printf("%-14s %u of %u blocks differ, %.1f ns for 16 inputs\n", entry.name, wrong, checked, time * 1e9);
        failures += wrong;
    }
}

// --- lane counts agree -------------------------------------------------------------------------------

class Inputs {
public:
    u32 next() {
        static constexpr u32 edges[] = {0,          1,          0x7fffff,   0x800000,   0x3f800000, 0x7f7fffff,
                                        0x7f800000, 0x7f800001, 0x7fc00000, 0x7fffffff, 0x7e800000, 0x7f000000};
        u32 word = u32(engine_());
        switch (engine_() % 4) {
        case 0: return edges[engine_() % std::size(edges)] | (word & 0x80000000u);
        case 1: return (word & 0x80000000u) | (0x3f800000 - 0x2000000 + (word & 0x3ffffff)); // around one
        case 2: return (word & 0x807fffffu) | u32(engine_() % 2 ? engine_() % 4 : 250 + engine_() % 6) << 23;
        default: return word;
        }
    }
    template <int N> I32<N> vector() {
        I32<N> result;
        for (int i = 0; i < N; ++i) result[i] = int(next());
        return result;
    }

private:
    std::mt19937_64 engine_{2};
};

template <int N> I32<N> low_lanes(I32<lanes> v) {
    I32<N> result;
    for (int i = 0; i < N; ++i) result[i] = v[i];
    return result;
}

template <int N, typename... Arguments>
void expect_lanes(const char* name, I32<lanes> all, I32<N> got, Arguments... inputs) {
    for (int i = 0; i < N; ++i) {
        if (all[i] == got[i] || failures++ >= 20) continue;
        std::printf("%s: %08x in %d lanes, %08x in 16, of", name, u32(got[i]), N, u32(all[i]));
        (std::printf(" %08x", u32(inputs[i])), ...);
        std::printf("\n");
    }
}

#define CHECK_UNARY(name)                                                                                     \
    {                                                                                                         \
        I32<lanes> all = bits<lanes>(ptm_##name##_f32_16(real<lanes>(a)));                                    \
        expect_lanes<8>(#name, all, bits<8>(ptm_##name##_f32_8(real<8>(low_lanes<8>(a)))), a);                \
        expect_lanes<4>(#name, all, bits<4>(ptm_##name##_f32_4(real<4>(low_lanes<4>(a)))), a);                \
        expect_lanes<1>(#name, all, I32<1>(__builtin_bit_cast(int, ptm_##name##_f32_1(real<lanes>(a)[0]))), a); \
    }
#define CHECK_BINARY(name)                                                                                    \
    {                                                                                                         \
        F32<lanes> x = real<lanes>(a), y = real<lanes>(b);                                                    \
        I32<lanes> all = bits<lanes>(ptm_##name##_f32_16(x, y));                                              \
        expect_lanes<8>(#name, all, bits<8>(ptm_##name##_f32_8(real<8>(low_lanes<8>(a)), real<8>(low_lanes<8>(b)))), a, b); \
        expect_lanes<4>(#name, all, bits<4>(ptm_##name##_f32_4(real<4>(low_lanes<4>(a)), real<4>(low_lanes<4>(b)))), a, b); \
        expect_lanes<1>(#name, all, I32<1>(__builtin_bit_cast(int, ptm_##name##_f32_1(x[0], y[0]))), a, b);   \
    }

void check_lane_counts(int rounds) {
    Inputs source;
    for (int round = 0; round < rounds; ++round) {
        I32<lanes> a = source.vector<lanes>(), b = source.vector<lanes>();
        CHECK_UNARY(rcp) CHECK_UNARY(rsqrt) CHECK_UNARY(sqrt) CHECK_UNARY(ex2) CHECK_UNARY(lg2)
        CHECK_UNARY(sin) CHECK_UNARY(cos) CHECK_UNARY(tanh)
        CHECK_UNARY(rcp_ftz) CHECK_UNARY(rsqrt_ftz) CHECK_UNARY(sqrt_ftz) CHECK_UNARY(ex2_ftz) CHECK_UNARY(lg2_ftz)
        CHECK_BINARY(div_approx) CHECK_BINARY(div_approx_ftz) CHECK_BINARY(div_full) CHECK_BINARY(div_full_ftz)
    }
}

// All 65536 inputs; sums as in the file, recorded on the same H200.
void check_halves() {
#define HALF_CASE(name) ptm_##name##_1, ptm_##name##_4, ptm_##name##_8, ptm_##name##_16
    const struct {
        const char* name;
        int (*one)(int);
        I32<4> (*four)(I32<4>);
        I32<8> (*eight)(I32<8>);
        I32<16> (*sixteen)(I32<16>);
        u64 plain, weighted;
    } cases[] = {
        {"ex2.f16", HALF_CASE(ex2_f16), 1053990033, 56014184962685},
        {"tanh.f16", HALF_CASE(tanh_f16), 1845284940, 160403576032632},
        {"ex2.bf16", HALF_CASE(ex2_bf16), 1071505437, 53620922922659},
        {"tanh.bf16", HALF_CASE(tanh_bf16), 1874832382, 163713695445554},
    };
    for (const auto& test : cases) {
        u64 plain = 0, weighted = 0;
        bool same = true; // in all lane counts
        for (int i = 0; i < 65536; ++i) {
            const int one = test.one(i);
            const u64 result = u64(one) & 0xffff;
            plain += result;
            weighted += result * (2 * u64(i) + 1);
            const I32<4> four = test.four(I32<4>(i));
            const I32<8> eight = test.eight(I32<8>(i));
            const I32<16> sixteen = test.sixteen(I32<16>(i));
            for (int lane = 0; lane < 16; ++lane)
                same = same && four[lane % 4] == one && eight[lane % 8] == one && sixteen[lane] == one;
        }
        if (plain == test.plain && weighted == test.weighted && same) continue;
        std::printf("%s differs\n", test.name);
        ++failures;
    }
}

#if !defined(PTARMIGAN_SFU_AVX2) && !defined(PTARMIGAN_SFU_AVX512)

// --- directed rounding -----------------------------------------------------------------------------

class Operands {
public:
    double next() {
        static constexpr u64 edges[] = {0, 1, 1ul << 63, 0x3ff0000000000000, 0xbff0000000000000, 0x7ff0000000000000,
                                        0xfff0000000000000, 0x7fefffffffffffff, 0x10000000000000, 0xfffffffffffff};
        u64 word = engine_();
        switch (engine_() % 6) {
        case 0: return to_double(word);
        case 1: return to_double((word & 0x800ffffffffffffful) | (1013 + engine_() % 20) << 52);
        case 2: return to_double(word & 0x801ffffffffffffful);
        case 3: return to_double((word & 0xffful << 52) | engine_() % 4);
        case 4: return to_double((word & 1ul << 63) | (0x7fe0000000000000 + (engine_() & 0x1fffffffffffff)));
        default: return to_double(edges[engine_() % 10]);
        }
    }
    u64 word() { return engine_(); }

private:
    std::mt19937_64 engine_{1};
};

void expect(const char* operation, int mode, double a, double b, double c, double got, double wanted) {
    if (to_bits(got) == to_bits(wanted) || (std::isnan(got) && std::isnan(wanted))) return;
    if (failures++ < 10) std::printf("%s mode %d of %a %a %a: got %a, expected %a\n", operation, mode, a, b, c, got, wanted);
}

void check_directed() {
    const int host_modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    Operands operands;
    for (int i = 0; i < 200000; ++i) {
        volatile double a = operands.next(), b = operands.next(), c = operands.next();
        if (operands.word() % 4 == 0) c = -a * b * (1 + double(operands.word() % 3) * 0x1p-52); // cancel
        for (int mode = toward_zero; mode <= up; ++mode) {
            std::fesetround(host_modes[mode]);
            volatile double sum = a + b, difference = a - b, product = a * b, quotient = a / b;
            volatile double fused = std::fma(a, b, c), root = std::sqrt(a);
            std::fesetround(FE_TONEAREST);
            expect("add", mode, a, b, 0, ptm_add_round_f64_1(a, b, mode), sum);
            expect("sub", mode, a, b, 0, ptm_sub_round_f64_1(a, b, mode), difference);
            expect("mul", mode, a, b, 0, ptm_mul_round_f64_1(a, b, mode), product);
            expect("div", mode, a, b, 0, ptm_div_round_f64_1(a, b, mode), quotient);
            expect("fma", mode, a, b, c, ptm_fma_round_f64_1(a, b, c, mode), fused);
            expect("sqrt", mode, a, 0, 0, ptm_sqrt_round_f64_1(a, mode), root);
        }
    }
}

#endif

} // namespace

int main(int argc, char** argv) {
#if defined(PTARMIGAN_SFU_AVX2)
    const bool can_run = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#elif defined(PTARMIGAN_SFU_AVX512)
    bool can_run = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
#ifdef __AVX512VBMI__
    can_run = can_run && __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
              __builtin_cpu_supports("avx512vnni");
#endif
#endif
#if defined(PTARMIGAN_SFU_AVX2) || defined(PTARMIGAN_SFU_AVX512)
    if (!can_run) {
        std::printf("skipped: this CPU lacks what it is compiled for\n");
        return 77;
    }
#endif
    u32 step = argc > 1 ? u32(std::atoi(argv[1])) : 64;
#if !defined(PTARMIGAN_SFU_AVX2) && !defined(PTARMIGAN_SFU_AVX512) // these have no variants
    check_directed();
#endif
    check_halves();
    check_lane_counts(step > 1 ? 30000 : 1000000);
    check_recorded(step ? step : 1, argc > 2 ? argv[2] : nullptr);
    if (argc <= 2) check_texture_reciprocal(step ? step : 1);
    std::printf(failures ? "FAILED\n" : "all results match\n");
    return failures != 0;
}
