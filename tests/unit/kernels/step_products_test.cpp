// SPDX-License-Identifier: Apache-2.0
// Products of matrices by tiles in shared memory, whose steps go through their sums side by side (llvm/jam_steps.h):
// every sum adds its products in the order of the text, whatever is beside it.
#include "kernel.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace ptarmigan::test;

namespace {

/// `side` * `side` threads, each with `each` * `each` results: C = A * B of `rounds` tiles along k.
struct Shape {
    unsigned side, each, rounds;
    unsigned rows() const { return side * each; }
    unsigned depth() const { return side * rounds; }
};

/// Thread (x, y) of the block by %r60 alone: `side` is a power of two.
/// `is_turned`: B's tile lies column after column, so that lanes' words lie far apart.
std::string product_text(const Shape& shape, bool sums_in_memory, bool is_turned, bool is_double = false) {
    const unsigned side = shape.side, each = shape.each, rows = shape.rows();
    const auto number = [](unsigned n) { return std::to_string(n); };
    std::string shift;
    for (unsigned n = 0; n < 8; ++n)
        if (1u << n == side) shift = number(n);
    const unsigned bytes = is_double ? 8 : 4;
    const std::string type = is_double ? "f64" : "f32", log = is_double ? "3" : "2";
    const auto reg = [&](unsigned n) { return (is_double ? "%s" : "%f") + number(n); };
    std::string text = ".reg .f64 %s<32>; and.b32 %r1, %r60, " + number(side - 1) + "; shr.u32 %r2, %r60, " + shift + ";\n"
                       "mov.u32 %r3, tile_a; mov.u32 %r4, tile_b; mov.u32 %r10, 0; mov.u32 %r9, tile_c;\n"
                       "shl.b32 %r5, %r60, " + log + "; add.u32 %r9, %r9, %r5;\n"
                       // columns of A's rows and of B
                       "mad.lo.u32 %r5, %r2, " + number(side * bytes) + ", %r3; mad.lo.u32 %r6, %r1, " + number(is_turned ? side * bytes : bytes) + ", %r4;\n";
    for (unsigned i = 0; i < each * each; ++i) text += "mov." + type + " " + reg(i) + (is_double ? ", 0d0000000000000000;\n" : ", 0f00000000;\n");
    if (sums_in_memory) text += "st.shared." + type + " [%r9], " + reg(0) + ";\n";
    text += "loop:\n";
    for (unsigned i = 0; i < each; ++i)
        // a[y + i * side][x] = A[(y + i * side) * depth + k + x]; b[y][x + i * side] = B[(k + y) * rows + x + i * side]
        text += "add.u32 %r20, %r2, " + number(i * side) + "; mad.lo.u32 %r21, %r20, " + number(shape.depth()) + ", %r1; add.u32 %r21, %r21, %r10;\n"
                "mul.wide.u32 %l1, %r21, " + number(bytes) + "; add.u64 %l1, %l1, %l60; ld.global." + type + " " + reg(20) + ", [%l1];\n"
                "mad.lo.u32 %r22, %r20, " + number(side) + ", %r1; shl.b32 %r22, %r22, " + log + "; add.u32 %r22, %r22, %r3; st.shared." + type + " [%r22], " + reg(20) + ";\n"
                "add.u32 %r20, %r2, %r10; mad.lo.u32 %r21, %r20, " + number(rows) + ", %r1; add.u32 %r21, %r21, " + number(i * side) + ";\n"
                "mul.wide.u32 %l1, %r21, " + number(bytes) + "; add.u64 %l1, %l1, %l61; ld.global." + type + " " + reg(20) + ", [%l1];\n"
                "mad.lo.u32 %r22, " + (is_turned ? "%r1, " + number(side) + ", %r2" : "%r2, " + number(rows) + ", %r1") +
                "; add.u32 %r22, %r22, " + number(i * side * (is_turned ? side : 1)) + "; shl.b32 %r22, %r22, " + log + "; add.u32 %r22, %r22, %r4;\n"
                "st.shared." + type + " [%r22], " + reg(20) + ";\n";
    text += "bar.sync 0;\n";
    if (sums_in_memory) text += "ld.shared." + type + " " + reg(0) + ", [%r9];\n";
    for (unsigned k = 0; k < side; ++k) {
        for (unsigned i = 0; i < each; ++i)
            text += "ld.shared." + type + " " + reg(20 + i) + ", [%r5+" + number((i * side * side + k) * bytes) + "];\n"
                    "ld.shared." + type + " " + reg(24 + i) + ", [%r6+" + number((is_turned ? i * side * side + k : k * rows + i * side) * bytes) + "];\n";
        for (unsigned i = 0; i < each; ++i)
            for (unsigned j = 0; j < each; ++j) {
                const std::string sum = reg(i * each + j);
                text += "fma.rn." + type + " " + sum + ", " + reg(20 + i) + ", " + reg(24 + j) + ", " + sum + ";\n";
            }
    }
    if (sums_in_memory) text += "st.shared." + type + " [%r9], " + reg(0) + ";\n";
    text += "bar.sync 0;\nadd.u32 %r10, %r10, " + number(side) + "; setp.lt.u32 %p1, %r10, " + number(shape.depth()) + ";\n@%p1 bra loop;\n";
    for (unsigned i = 0; i < each; ++i)
        for (unsigned j = 0; j < each; ++j)
            text += "add.u32 %r20, %r2, " + number(i * side) + "; mad.lo.u32 %r21, %r20, " + number(rows) + ", %r1; add.u32 %r21, %r21, " + number(j * side) + ";\n"
                    "mul.wide.u32 %l1, %r21, " + number(bytes) + "; add.u64 %l1, %l1, %l62; st.global." + type + " [%l1], " + reg(i * each + j) + ";\n";
    return text;
}

std::uint32_t bits(float value) {
    if (std::isnan(value)) return 0x7fffffff;
    std::uint32_t word;
    std::memcpy(&word, &value, 4);
    return word;
}

std::uint64_t bits(double value) {
    std::uint64_t word;
    std::memcpy(&word, &value, 8);
    return word;
}
double number_of(std::uint64_t word) {
    double value;
    std::memcpy(&value, &word, 8);
    return value;
}

/// a * b + c as the hardware has it: of several NaNs b, else c, else a, quieted; what it makes has its sign set.
double fused(double a, double b, double c) {
    for (double operand : {b, c, a})
        if (std::isnan(operand)) return number_of(bits(operand) | 0x8000000000000);
    const double result = std::fma(a, b, c);
    return std::isnan(result) ? number_of(0xfff8000000000000) : result;
}

template <typename Number> std::vector<Number> random_matrix(std::size_t size, std::mt19937& random) {
    std::uniform_real_distribution<Number> numbers(-2, 2);
    std::vector<Number> matrix(size);
    for (Number& each : matrix) each = numbers(random);
    return matrix;
}

} // namespace

TEST_CASE("tiles of products whose steps go side by side", "[kernels][barriers][memory][products]") {
    const Shape shape = GENERATE(Shape{4, 1, 2}, Shape{8, 1, 3}, Shape{16, 1, 3}, Shape{32, 1, 2}, Shape{8, 2, 2},
                                 Shape{16, 2, 2}, Shape{8, 4, 2}, Shape{16, 4, 2});
    const bool sums_in_memory = GENERATE(false, true), is_turned = GENERATE(false, true);
    if (sums_in_memory && shape.each > 1) return;
    CAPTURE(shape.side, shape.each, sums_in_memory, is_turned);
    const unsigned rows = shape.rows(), depth = shape.depth();
    std::mt19937 random(rows * 7 + depth);
    auto a = random_matrix<float>(rows * depth, random), b = random_matrix<float>(depth * rows, random);
    a[3 * depth + 1] = std::numeric_limits<float>::infinity(); // a row of infinities and NaNs
    b[2 * rows + 3] = std::numeric_limits<float>::quiet_NaN(); // a column of NaNs
    for (unsigned k = 0; k < depth; ++k) a[k] *= 1e-39f;       // subnormal products
    Array<float> device_a(a), device_b(b), c(rows * rows);
    run(product_text(shape, sums_in_memory, is_turned), {1}, {shape.side * shape.side}, {device_a.address(), device_b.address(), c.address()},
        ".shared .align 4 .f32 tile_a[4096];\n.shared .align 4 .f32 tile_b[4096];\n.shared .align 4 .f32 tile_c[1024];\n");
    const std::vector<float> got = c.values();
    unsigned wrong = 0;
    for (unsigned i = 0; i < rows; ++i)
        for (unsigned j = 0; j < rows; ++j) {
            float sum = 0;
            for (unsigned k = 0; k < depth; ++k) sum = std::fma(a[i * depth + k], b[k * rows + j], sum);
            wrong += bits(sum) != bits(got[i * rows + j]);
        }
    CHECK(wrong == 0);
}

TEST_CASE("tiles of products of doubles, with and without NaNs", "[kernels][barriers][memory][products]") {
    const Shape shape = GENERATE(Shape{8, 1, 3}, Shape{16, 1, 3}, Shape{32, 1, 2}, Shape{8, 2, 2}, Shape{8, 4, 2}, Shape{16, 4, 2});
    const bool is_turned = GENERATE(false, true), has_nans = GENERATE(false, true);
    CAPTURE(shape.side, shape.each, is_turned, has_nans);
    const unsigned rows = shape.rows(), depth = shape.depth();
    std::mt19937 random(rows * 5 + depth);
    auto a = random_matrix<double>(rows * depth, random), b = random_matrix<double>(depth * rows, random);
    if (has_nans) {
        a[(rows - 1) * depth + 1] = std::numeric_limits<double>::infinity();
        a[(rows - 1) * depth + depth - 1] = -std::numeric_limits<double>::infinity();
        a[(rows / 2) * depth + depth - 2] = number_of(0x7ff0000000000123); // signalling, in the second tile's rows alone
        b[(depth - 1) * rows + 3] = number_of(0xfff8000000000456);
        b[2 * rows + 3] = number_of(0x7ff8000000000789);
        a[(rows / 2 + 1) * depth + 1] = number_of(0x7ff8000000000abc); // which the sum keeps beside the next one
        a[(rows / 2 + 1) * depth + depth - 1] = number_of(0x7ff8000000000def);
    }
    Array<double> device_a(a), device_b(b), c(rows * rows);
    run(product_text(shape, false, is_turned, true), {1}, {shape.side * shape.side}, {device_a.address(), device_b.address(), c.address()},
        ".shared .align 8 .f64 tile_a[1024];\n.shared .align 8 .f64 tile_b[1024];\n.shared .align 8 .f64 tile_c[1024];\n");
    const std::vector<double> got = c.values();
    unsigned wrong = 0;
    for (unsigned i = 0; i < rows; ++i)
        for (unsigned j = 0; j < rows; ++j) {
            double sum = 0;
            for (unsigned k = 0; k < depth; ++k) sum = fused(a[i * depth + k], b[k * rows + j], sum);
            wrong += bits(sum) != bits(got[i * rows + j]);
        }
    CHECK(wrong == 0);
}
