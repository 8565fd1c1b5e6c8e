// SPDX-License-Identifier: Apache-2.0
// NaN bits that programs can see stay canonical however far the canonicalisation moved; others' bits stay as they were.
#include "ir_fixture.h"
#include "runtime/code/image_loader.h"

#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <cstring>

using namespace ptarmigan;
using translator::image_of_ir;

namespace {

constexpr std::uint32_t payload_nan = 0xffc12345, canonical = 0x7fffffff;

float from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }

/// sum = initial; for i < n: sum = canon(fma(a[i], a[i], sum)); out = sum.   `%body` may use %sum and %c.
std::string loop(const std::string& initial, const std::string& body, const std::string& exit) {
    return R"(
declare float @llvm.fma.f32(float, float, float)
declare float @llvm.fabs.f32(float)
define void @ptarmigan_kernel(ptr %out, ptr %a, i64 %n, ptr %start) {
entry:
  %loaded = load float, ptr %start
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %step]
  %sum = phi float [)" + initial + R"(, %entry], [%c, %step]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %step, label %done
step:
  %p = getelementptr float, ptr %a, i64 %i
  %v = load float, ptr %p
  %x = call float @llvm.fma.f32(float %v, float %v, float %sum)
  %nan = fcmp uno float %x, %x
  %c = select i1 %nan, float 0x7FFFFFFFE0000000, float %x
)" + body + R"(
  %next = add i64 %i, 1
  br label %head
done:
)" + exit + R"(
  ret void
})";
}

struct Outcome {
    std::uint32_t out[4] = {};
};

Outcome run(const std::string& ir, std::vector<std::uint32_t> a, std::uint32_t start = 0) {
    const auto image = runtime::LoadedImage::load(image_of_ir(ir), "nan");
    Outcome outcome;
    const auto kernel = reinterpret_cast<void (*)(void*, const void*, std::uint64_t, const void*)>(
        const_cast<void*>(image->entry()));
    kernel(outcome.out, a.data(), a.size(), &start);
    return outcome;
}

const std::string store_sum = "  store float %sum, ptr %out";

} // namespace

TEST_CASE("nan: a sum over a loop is canonical behind it") {
    const std::string ir = loop("0.0", "", store_sum);
    CHECK(run(ir, {std::bit_cast<std::uint32_t>(2.0f), payload_nan}).out[0] == canonical);
    CHECK(run(ir, {payload_nan, std::bit_cast<std::uint32_t>(2.0f)}).out[0] == canonical);
    CHECK(from_bits(run(ir, {std::bit_cast<std::uint32_t>(2.0f), std::bit_cast<std::uint32_t>(3.0f)}).out[0]) == 13.0f);
    CHECK(run(ir, {}).out[0] == 0);
}

TEST_CASE("nan: in the loop nothing tests for NaN") {
    const std::string assembly = translator::assembly_of_ir(loop("0.0", "", store_sum), "x86-64-v4");
    const std::size_t fma = assembly.find("vfmadd"), branch = assembly.find("\tj", fma);
    REQUIRE(fma != std::string::npos);
    const std::string tail = assembly.substr(fma, branch - fma);
    CHECK_THAT(tail, !Catch::Contains("vucomi"));
    CHECK_THAT(tail, !Catch::Contains("vcmp"));
}

TEST_CASE("nan: a value that was only moved keeps its bits") {
    const std::string ir = loop("%loaded", "", store_sum);
    CHECK(run(ir, {}, payload_nan).out[0] == payload_nan); // no iteration: a copy
    CHECK(run(ir, {0}, payload_nan).out[0] == canonical);
}

TEST_CASE("nan: bits seen inside the loop are canonical") {
    const std::string ir = loop("0.0", R"(
  %q = getelementptr i32, ptr %out, i64 1
  %bits = bitcast float %c to i32
  %twice = add i32 %bits, 1
  store i32 %twice, ptr %q)", store_sum);
    CHECK(run(ir, {payload_nan}).out[1] == canonical + 1);
    CHECK(run(ir, {payload_nan}).out[0] == canonical);
}

TEST_CASE("nan: signs of NaNs are bits too") {
    const std::string ir = loop("0.0", R"(
  %q = getelementptr i32, ptr %out, i64 1
  %minus = fneg float %c
  store float %minus, ptr %q
  %r = getelementptr i32, ptr %out, i64 2
  %abs = call float @llvm.fabs.f32(float %minus)
  store float %abs, ptr %r)", store_sum);
    const Outcome outcome = run(ir, {payload_nan});
    CHECK(outcome.out[1] == 0xffffffff);
    CHECK(outcome.out[2] == canonical);
}

TEST_CASE("nan: blends under masks, and integers that carry floats") {
    const std::string ir = R"(
declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
define void @ptarmigan_kernel(ptr %out, ptr %a, i64 %n) {
entry:
  %v = load <16 x float>, ptr %a, align 4
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %head]
  %sum = phi <16 x i32> [zeroinitializer, %entry], [%blend, %head]
  %real = bitcast <16 x i32> %sum to <16 x float>
  %x = call <16 x float> @llvm.fma.v16f32(<16 x float> %v, <16 x float> %v, <16 x float> %real)
  %nan = fcmp uno <16 x float> %x, %x
  %c = select <16 x i1> %nan, <16 x float> )" +
                           [] {
                               std::string list = "<";
                               for (int i = 0; i < 16; ++i)
                                   list += std::string(i ? ", " : "") + "float 0x7FFFFFFFE0000000";
                               return list + ">";
                           }() + R"(, <16 x float> %x
  %bits = bitcast <16 x float> %c to <16 x i32>
  %mask = fcmp olt <16 x float> %v, zeroinitializer
  %blend = select <16 x i1> %mask, <16 x i32> %sum, <16 x i32> %bits
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %head, label %done
done:
  store <16 x i32> %blend, ptr %out, align 4
  ret void
})";
    const auto image = runtime::LoadedImage::load(image_of_ir(ir), "nan");
    std::uint32_t a[16], out[16];
    for (int i = 0; i < 16; ++i) a[i] = std::bit_cast<std::uint32_t>(i % 3 == 0 ? -1.0f : float(i));
    a[5] = payload_nan;
    reinterpret_cast<void (*)(void*, const void*, std::uint64_t)>(const_cast<void*>(image->entry()))(
        out, a, 3);
    for (int i = 0; i < 16; ++i) {
        INFO(i);
        if (i == 5)
            CHECK(out[i] == canonical);
        else
            CHECK(from_bits(out[i]) == (i % 3 == 0 ? 0.0f : 3.0f * float(i) * float(i)));
    }
    const std::string assembly = translator::assembly_of_ir(ir, "x86-64-v4");
    const std::size_t fma = assembly.find("vfmadd"), branch = assembly.find("\tj", fma);
    CHECK_THAT(assembly.substr(fma, branch - fma), !Catch::Contains("vcmpunord"));
}
