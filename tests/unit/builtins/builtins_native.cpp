// SPDX-License-Identifier: Apache-2.0
// The builtins as plain C++: the special function unit against checksums recorded on an H200, double arithmetic in
// directed modes against the host's unit. Argument: check every n-th block of 2^23 inputs.
#include "translator/builtins/library/double_rounding.cpp"
#include "translator/builtins/library/sfu.cpp"

#include <cfenv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
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
template <F64<8> function(F64<8>)> I32<lanes> high_words(I32<lanes> inputs) {
    I32<lanes> hashes;
    for (int half = 0; half < lanes; half += 8) {
        I64<8> operands;
        for (int i = 0; i < 8; ++i) operands[i] = long(u64(u32(inputs[half + i])) << 32);
        I64<8> results = bits<8>(function(real<8>(operands)));
        for (int i = 0; i < 8; ++i)
            hashes[half + i] = int(u32(u64(results[i]) >> 32) + u32(results[i]) * 0x9e3779b1u);
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
    {"cos", single<ptm_cos_f32_16>},              {"rcp.ftz.f64", high_words<ptm_rcp_ftz_f64_8>},
    {"rsqrt.ftz.f64", high_words<ptm_rsqrt_ftz_f64_8>}, {"rsqrt.f64", high_words<ptm_rsqrt_f64_8>},
};

bool block_matches(Function function, u32 block, const u64* sums) {
    u64 plain = 0, weighted = 0;
    for (u32 first = 0; first < 1u << 23; first += lanes) {
        I32<lanes> inputs;
        for (int i = 0; i < lanes; ++i) inputs[i] = int(block << 23 | (first + u32(i)));
        I32<lanes> results = function(inputs);
        for (int i = 0; i < lanes; ++i) {
            u64 result = u32(results[i]);
            plain += result;
            weighted += result * (2 * (first + u64(i)) + 1);
        }
    }
    return plain == sums[0] && weighted == sums[1];
}

void check_recorded(u32 step) {
    std::vector<u64> sums = read_file<u64>(TEST_DATA "/h200_sums.bin", 18 * 512 * 2);
    u32 index = 0;
    for (const Recorded& entry : recorded) {
        u32 wrong = 0, checked = 0;
        // A different set of blocks for each function, so that the sample covers more exponents.
        for (u32 block = step > 1 ? (index * 29 + 127) % step : 0; block < 512; block += step, ++checked)
            wrong += !block_matches(entry.function, block, &sums[(index * 512 + block) * 2]);
        if (wrong) std::printf("%s: %u of %u blocks differ\n", entry.name, wrong, checked);
        failures += wrong;
        ++index;
    }
}

// All 65536 inputs; sums as in the file, recorded on the same H200.
void check_halves() {
    const struct {
        const char* name;
        int (*function)(int);
        u64 plain, weighted;
    } cases[] = {
        {"ex2.f16", ptm_ex2_f16_1, 1053990033, 56014184962685},
        {"tanh.f16", ptm_tanh_f16_1, 1845284940, 160403576032632},
        {"ex2.bf16", ptm_ex2_bf16_1, 1071505437, 53620922922659},
        {"tanh.bf16", ptm_tanh_bf16_1, 1874832382, 163713695445554},
    };
    for (const auto& test : cases) {
        u64 plain = 0, weighted = 0;
        for (int i = 0; i < 65536; ++i) {
            u64 result = u64(test.function(i)) & 0xffff;
            plain += result;
            weighted += result * (2 * u64(i) + 1);
        }
        if (plain == test.plain && weighted == test.weighted) continue;
        std::printf("%s differs\n", test.name);
        ++failures;
    }
}

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

} // namespace

int main(int argc, char** argv) {
    u32 step = argc > 1 ? u32(std::atoi(argv[1])) : 64;
    check_directed();
    check_halves();
    check_recorded(step ? step : 1);
    std::printf(failures ? "FAILED\n" : "all results match\n");
    return failures != 0;
}
