// SPDX-License-Identifier: Apache-2.0
// .approx and .full instructions in kernels: the hardware's bits by default, the manual's error bounds when fast.
#include "host_float.h"
#include "statement_runner.h"

#include <catch2/catch.hpp>

#include <fstream>
#include <map>
#include <sstream>

using namespace ptarmigan::test;

namespace {

const char* const columns[] = {"rcp.approx.ftz", "rsqrt.approx.ftz", "sqrt.approx.ftz", "ex2.approx.ftz", "lg2.approx.ftz",
                               "sin.approx.ftz", "cos.approx.ftz",   "tanh.approx",     "rcp.approx",     "rsqrt.approx",
                               "sqrt.approx",    "ex2.approx",       "lg2.approx"};

using Results = std::map<std::uint64_t, std::uint64_t>;

/// Result by input, for each column.
std::vector<Results> read_samples() {
    std::ifstream file(TEST_DATA "/sfu/samples.txt");
    std::vector<Results> samples(std::size(columns));
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line[0] == '#') continue;
        std::istringstream fields(line);
        std::uint64_t input, result;
        fields >> std::hex >> input;
        for (Results& column : samples) {
            fields >> result;
            column[input] = result;
        }
    }
    REQUIRE(samples[0].size() > 70);
    return samples;
}

} // namespace

TEST_CASE("approximation: the bits of the hardware", "[approximation]") {
    std::vector<Results> samples = read_samples();
    for (std::size_t i = 0; i < samples.size(); ++i) {
        std::vector<Operands> in;
        for (const auto& sample : samples[i]) in.push_back({sample.first, 0, 0});
        check_statement({std::string(columns[i]) + ".f32 %d, %a;"}, in, [&](const Operands& o) { return samples[i].at(o[0]); });
    }
}

TEST_CASE("approximation: quotients follow from reciprocals", "[approximation]") {
    std::vector<Results> samples = read_samples();
    std::vector<Operands> in;
    for (const auto& b : samples[0])
        for (std::uint64_t a : {0x3f800000u, 0xc0490fdbu, 0x00000001u, 0x7f7fffffu, 0x7f800000u, 0x00000000u, 0x12345678u})
            in.push_back({a, b.first, 0});
    // Where neither operand needs scaling, div.full and div.approx are a * rcp(b).
    std::erase_if(in, [](const Operands& o) {
        std::uint64_t e = o[1] >> 23 & 255;
        return e == 0 || (e >= 253 && e < 255);
    });
    auto reference = [&](const Operands& o) {
        return canonical_bits(from_bits<float>(o[0]) * from_bits<float>(samples[0].at(o[1])));
    };
    check_statement({"div.approx.f32 %d, %a, %b;", 32, 32, 32}, in, reference);
    check_statement({"div.full.f32 %d, %a, %b;", 32, 32, 32}, in, reference);
}

TEST_CASE("approximation: fast forms stay within the manual's bounds", "[approximation]") {
    std::vector<Operands> in;
    for (unsigned i = 1; i < 2000; ++i) in.push_back({to_bits(float(i) * 0.037f), 0, 0});
    struct {
        const char* op;
        double (*exact)(double);
        double relative, absolute;
    } cases[] = {
        {"rcp.approx.ftz", [](double x) { return 1 / x; }, 0x1p-23, 0},
        {"rsqrt.approx.ftz", [](double x) { return 1 / std::sqrt(x); }, 0x1.7p-23, 0},
        {"sqrt.approx.ftz", [](double x) { return std::sqrt(x); }, 0x1p-23, 0},
        {"ex2.approx.ftz", [](double x) { return std::exp2(x); }, 0x1.3p-22, 0},
        {"lg2.approx.ftz", [](double x) { return std::log2(x); }, 0x1p-22, 0x1p-22},
        {"sin.approx.ftz", [](double x) { return std::sin(x); }, 0, 0x1p-14},
        {"cos.approx.ftz", [](double x) { return std::cos(x); }, 0, 0x1p-14},
        {"tanh.approx", [](double x) { return std::tanh(x); }, 0x1p-10, 0},
    };
    for (const auto& test : cases) {
        std::vector<std::uint64_t> results =
            run_statement({std::string(test.op) + ".f32 %d, %a;"}, in, {"host", 0, true});
        double worst = 0;
        for (std::size_t i = 0; i < in.size(); ++i) {
            double exact = test.exact(from_bits<float>(in[i][0]));
            double error = std::fabs(from_bits<float>(results[i]) - exact);
            worst = std::max(worst, error - test.relative * std::fabs(exact) - test.absolute);
        }
        INFO(test.op);
        CHECK(worst <= 0);
    }
}

TEST_CASE("approximation: fast forms of special operands", "[approximation]") {
    const std::pair<std::uint32_t, std::uint32_t> cases[] = {
        {0x00000000, 0x7f800000}, {0x80000000, 0xff800000}, {0x7f800000, 0x00000000}, {0xff800000, 0x7fffffff},
        {0xbf800000, 0x7fffffff}, {0x7fc12345, 0x7fffffff}, {0x00400000, 0x5f3504f3}, {0x7f7fffff, 0x1f800000},
    };
    std::vector<Operands> in;
    for (const auto& [input, result] : cases) in.push_back({input, 0, 0});
    for (unsigned lanes : {0, 1, 32}) {
        std::vector<std::uint64_t> results = run_statement({"rsqrt.approx.f32 %d, %a;"}, in, {"host", lanes, true});
        for (std::size_t i = 0; i < in.size(); ++i) {
            INFO(std::hex << cases[i].first);
            const bool exact = from_bits<float>(cases[i].second) == 0 || !std::isfinite(from_bits<float>(cases[i].second));
            const std::int64_t distance = std::int64_t(results[i]) - std::int64_t(cases[i].second);
            CHECK(std::abs(distance) <= (exact ? 0 : 1));
        }
    }
}

TEST_CASE("approximation: double forms", "[approximation]") {
    std::vector<Operands> in = operands(Kind::f64);
    // 20 bits of mantissa, low word zero.
    for (const char* op : {"rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64"}) {
        std::vector<std::uint64_t> results = run_statement({std::string(op) + " %d, %a;", 64, 64}, in);
        for (std::size_t i = 0; i < in.size(); ++i) {
            double a = from_bits<double>(in[i][0]), got = from_bits<double>(results[i]);
            CHECK((results[i] & 0xffffffff) == 0);
            if (!std::isnormal(a) || (a < 0 && op[1] == 's')) continue;
            double exact = op[1] == 's' ? 1 / std::sqrt(a) : 1 / a;
            if (std::isnormal(exact)) CHECK(std::fabs(got - exact) <= 0x1p-19 * std::fabs(exact));
        }
    }
    std::vector<std::uint64_t> results = run_statement({"rsqrt.approx.f64 %d, %a;", 64, 64}, in);
    for (std::size_t i = 0; i < in.size(); ++i) {
        double a = from_bits<double>(in[i][0]), exact = 1 / std::sqrt(a);
        if (a > 0 && std::isfinite(a)) CHECK(std::fabs(from_bits<double>(results[i]) - exact) <= 0x1p-51 * exact);
    }
}
