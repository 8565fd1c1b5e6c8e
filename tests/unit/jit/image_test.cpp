// SPDX-License-Identifier: Apache-2.0
// Objects that LLVM makes of hand-written modules, linked, loaded and run (x86-64) or decoded (AArch64).
#include "ir_fixture.h"
#include "runtime/code/image_loader.h"
#include "translator/jit/image.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <numeric>

using namespace ptarmigan;
using translator::image_of_ir;
using translator::KernelImage;

namespace {

template <typename... Arguments> void run(const KernelImage& image, Arguments... arguments) {
    const auto loaded = runtime::LoadedImage::load(image, "test");
    reinterpret_cast<void (*)(Arguments...)>(const_cast<void*>(loaded->entry()))(arguments...);
}

std::string message_of(const std::string& ir) {
    try {
        image_of_ir(ir);
    } catch (const std::exception& error) {
        return error.what();
    }
    return "no error";
}

const char* const vector_constants = R"(
define void @ptarmigan_kernel(ptr %p) {
  %v = load <16 x float>, ptr %p, align 4
  %w = fmul <16 x float> %v, <float 1.0, float 2.0, float 3.0, float 4.0, float 5.0, float 6.0, float 7.0, float 8.0,
                              float 9.0, float 10.0, float 11.0, float 12.0, float 13.0, float 14.0, float 15.0, float 16.0>
  store <16 x float> %w, ptr %p, align 4
  ret void
})";

// Dense enough for a jump table, with calls that can't be merged into arithmetic.
const char* const jump_table = R"(
define internal void @put(ptr %p, i32 %v) noinline {
  store volatile i32 %v, ptr %p
  ret void
}
define void @ptarmigan_kernel(ptr %p, i32 %n) {
  switch i32 %n, label %other [i32 0, label %a  i32 1, label %b  i32 2, label %c  i32 3, label %d  i32 4, label %e]
a:
  call void @put(ptr %p, i32 17)
  ret void
b:
  %q = getelementptr i32, ptr %p, i64 1
  call void @put(ptr %q, i32 170)
  ret void
c:
  store i64 -1, ptr %p
  ret void
d:
  %r = getelementptr i32, ptr %p, i64 2
  call void @put(ptr %r, i32 1700)
  call void @put(ptr %p, i32 1)
  ret void
e:
  store i16 5, ptr %p
  ret void
other:
  call void @put(ptr %p, i32 99)
  ret void
})";

const char* const function_table = R"(
@table = internal unnamed_addr constant [2 x ptr] [ptr @one, ptr @two]
define internal i32 @one(i32 %x) noinline {
  %y = add i32 %x, 1
  ret i32 %y
}
define internal i32 @two(i32 %x) noinline {
  %y = mul i32 %x, 2
  ret i32 %y
}
define void @ptarmigan_kernel(ptr %p, i64 %which) {
  %slot = getelementptr [2 x ptr], ptr @table, i64 0, i64 %which
  %f = load ptr, ptr %slot
  %x = load i32, ptr %p
  %y = call i32 %f(i32 %x)
  store i32 %y, ptr %p
  ret void
})";

const char* const library_calls = R"(
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define void @ptarmigan_kernel(ptr %to, ptr %from, i64 %n, ptr %f) {
  call void @llvm.memset.p0.i64(ptr %to, i8 9, i64 %n, i1 false)
  %half = lshr i64 %n, 1
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %half, i1 false)
  %a = load float, ptr %f
  %r = frem float %a, 3.5
  store float %r, ptr %f
  ret void
})";

} // namespace

TEST_CASE("image: vector constants are found relative to the code") {
    float values[16];
    std::fill_n(values, 16, 0.5f);
    run(image_of_ir(vector_constants), &values[0]);
    for (int i = 0; i < 16; ++i) REQUIRE(values[i] == 0.5f * static_cast<float>(i + 1));
}

TEST_CASE("image: jump tables") {
    const KernelImage image = image_of_ir(jump_table);
    for (const auto& [n, index, expected] :
         {std::tuple{0, 0, 17}, {1, 1, 170}, {2, 1, -1}, {3, 2, 1700}, {4, 0, 5}, {7, 0, 99}}) {
        int memory[4] = {};
        run(image, &memory[0], n);
        CHECK(memory[index] == expected);
    }
}

TEST_CASE("image: tables of function addresses become relocations against the base") {
    const KernelImage image = image_of_ir(function_table);
    REQUIRE(image.relocations.size() >= 2);
    for (const auto& relocation : image.relocations) {
        CHECK(relocation.import == translator::image_base_import);
        CHECK(relocation.offset >= image.code_size);
    }
    int value = 20;
    run(image, &value, std::int64_t(0));
    CHECK(value == 21);
    run(image, &value, std::int64_t(1));
    CHECK(value == 42);
}

TEST_CASE("image: the ABI's library calls go through stubs") {
    std::vector<std::uint8_t> from(1000), to(1000);
    std::iota(from.begin(), from.end(), 0);
    float number = 12.0f;
    run(image_of_ir(library_calls), to.data(), from.data(), std::int64_t(1000), &number);
    CHECK(std::memcmp(to.data(), from.data(), 500) == 0);
    CHECK(to[500] == 9);
    CHECK(to[999] == 9);
    CHECK(number == std::fmod(12.0f, 3.5f));
}

TEST_CASE("image: what it can't take is named") {
    CHECK_THAT(message_of("declare void @surprise()\n"
                          "define void @ptarmigan_kernel() {\n call void @surprise()\n ret void\n}"),
               Catch::Contains("'surprise'"));
    CHECK_THAT(message_of("@state = internal global i32 1\n"
                          "define void @ptarmigan_kernel(i32 %x) {\n"
                          " %o = load volatile i32, ptr @state\n"
                          " store volatile i32 %x, ptr @state\n ret void\n}"),
               Catch::Contains("writable data"));
    CHECK_THAT(message_of("define void @something_else() {\n ret void\n}"),
               Catch::Contains("ptarmigan_kernel"));
    CHECK_THAT(message_of("define void @ptarmigan_kernel(ptr %p) {\n"
                          " %x = call float @llvm.sin.f32(float 1.5)\n"
                          " store float %x, ptr %p\n %y = load volatile float, ptr %p\n"
                          " %z = call float @llvm.sin.f32(float %y)\n store float %z, ptr %p\n"
                          " ret void\n}\ndeclare float @llvm.sin.f32(float)"),
               Catch::Contains("'sinf'"));
}

TEST_CASE("image: LLVM's fatal errors are exceptions, and compiling goes on afterwards") {
    // Without an assembler parser in the library, inline assembly is what LLVM would abort on.
    CHECK_THAT(message_of("define void @ptarmigan_kernel() {\n"
                          " call void asm sideeffect \"nop\", \"\"()\n ret void\n}"),
               Catch::Contains("LLVM"));
    float values[16] = {1};
    run(image_of_ir(vector_constants), &values[0]);
    CHECK(values[0] == 1.0f);
}

TEST_CASE("image: 512-bit vectors are used where the target has them") {
    CHECK_THAT(translator::assembly_of_ir(vector_constants, "x86-64-v4"), Catch::Contains("zmm"));
    const std::string avx2 = translator::assembly_of_ir(vector_constants, "x86-64-v3");
    CHECK_THAT(avx2, Catch::Contains("ymm"));
    CHECK_THAT(avx2, !Catch::Contains("zmm"));
}

TEST_CASE("image: multiplication and addition are not contracted") {
    const std::string ir = "define void @ptarmigan_kernel(ptr %p, float %a, float %b, float %c) {\n"
                           " %m = fmul float %a, %b\n %s = fadd float %m, %c\n"
                           " store float %s, ptr %p\n ret void\n}";
    CHECK_THAT(translator::assembly_of_ir(ir, "x86-64-v4"), !Catch::Contains("fmadd"));
    CHECK_THAT(translator::assembly_of_ir(ir, "aarch64"), !Catch::Contains("fmadd"));
}

TEST_CASE("image: PTX lines of code addresses") {
    const KernelImage image = image_of_ir(R"(
define void @ptarmigan_kernel(ptr %p) !dbg !4 {
  store volatile i32 1, ptr %p, !dbg !7
  store volatile i32 2, ptr %p, !dbg !8
  ret void, !dbg !8
}
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2, !3}
!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, emissionKind: LineTablesOnly)
!1 = !DIFile(filename: "k.ptx", directory: ".")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = !{i32 2, !"Dwarf Version", i32 4}
!4 = distinct !DISubprogram(name: "k", file: !1, line: 1, type: !5, unit: !0, spFlags: DISPFlagDefinition)
!5 = !DISubroutineType(types: !6)
!6 = !{}
!7 = !DILocation(line: 70, column: 2, scope: !4)
!8 = !DILocation(line: 123456, column: 2, scope: !4)
)");
    REQUIRE(image.lines.size() >= 2);
    const auto loaded = runtime::LoadedImage::load(image, "lines");
    const auto entry = reinterpret_cast<std::uintptr_t>(loaded->entry());
    runtime::CodeLocation where;
    bool found_first = false, found_second = false;
    for (unsigned i = 0; i < 20; ++i) { // five instructions of A64, more of x86-64
        REQUIRE(runtime::find_code(entry + i, where));
        CHECK(std::string(where.kernel) == "lines");
        found_first |= where.line == 70;
        found_second |= where.line == 123456;
    }
    CHECK(found_first);
    CHECK(found_second);
}

TEST_CASE("image: code addresses are known exactly while the image lives") {
    runtime::CodeLocation where;
    std::vector<std::unique_ptr<runtime::LoadedImage>> images;
    const KernelImage image = image_of_ir(vector_constants);
    for (int i = 0; i < 600; ++i)
        images.push_back(runtime::LoadedImage::load(image, "kernel" + std::to_string(i)));
    for (int i = 0; i < 600; ++i) {
        REQUIRE(runtime::find_code(images[static_cast<std::size_t>(i)]->code_begin(), where));
        REQUIRE(where.image == images[static_cast<std::size_t>(i)].get());
        REQUIRE(where.kernel == "kernel" + std::to_string(i));
    }
    const std::uintptr_t gone = images[300]->code_begin();
    images[300].reset();
    CHECK_FALSE(runtime::find_code(gone, where));
    CHECK_FALSE(runtime::find_code(reinterpret_cast<std::uintptr_t>(&where), where));
    CHECK(runtime::find_code(images[599]->code_end() - 1, where));
}

namespace {

std::uint32_t word(const KernelImage& image, std::size_t offset) {
    std::uint32_t value;
    std::memcpy(&value, image.bytes.data() + offset, 4);
    return value;
}

/// Image offsets that adrp + (add or 64/128-bit load) pairs of the code point at.
std::vector<std::size_t> adrp_targets(const KernelImage& image) {
    std::vector<std::size_t> targets;
    for (std::size_t at = 0; at + 8 <= image.code_size; at += 4) {
        const std::uint32_t adrp = word(image, at);
        if ((adrp & 0x9f000000) != 0x90000000) continue;
        std::int64_t pages = ((adrp >> 29) & 3) | ((adrp >> 3) & 0x1ffffc);
        if (pages & 0x100000) pages -= 0x200000;
        for (std::size_t next = at + 4; next + 4 <= image.code_size && next < at + 64; next += 4) {
            const std::uint32_t use = word(image, next);
            if (((use >> 5) & 31) != (adrp & 31)) continue;
            unsigned scale;
            if ((use & 0xffc00000) == 0x91000000) scale = 0;      // add
            else if ((use & 0xffc00000) == 0xf9400000) scale = 3; // ldr x
            else if ((use & 0xffc00000) == 0x3dc00000) scale = 4; // ldr q
            else continue;
            const std::size_t low = ((use >> 10) & 0xfff) << scale;
            targets.push_back((at & ~std::size_t(4095)) + static_cast<std::size_t>(pages * 4096) + low);
            break;
        }
    }
    return targets;
}

} // namespace

TEST_CASE("image: AArch64 addresses of constants") {
    const KernelImage image = image_of_ir(vector_constants, "aarch64");
    const auto targets = adrp_targets(image);
    REQUIRE(!targets.empty());
    for (const std::size_t target : targets) {
        REQUIRE(target >= image.code_size);
        REQUIRE(target + 16 <= image.bytes.size());
        float values[4];
        std::memcpy(values, image.bytes.data() + target, 16);
        CHECK(values[1] == values[0] + 1.0f); // a quarter of 1, 2, ... 16
        CHECK(values[0] == std::floor(values[0]));
    }
}

TEST_CASE("image: AArch64 calls of imports reach a stub that loads a relocated slot") {
    const KernelImage image = image_of_ir(library_calls, "aarch64");
    unsigned calls_of_stubs = 0;
    for (std::size_t at = 0; at + 4 <= image.code_size; at += 4) {
        const std::uint32_t branch = word(image, at);
        if ((branch & 0xfc000000) != 0x94000000) continue; // bl
        const std::int64_t distance = static_cast<std::int32_t>(branch << 6) >> 4;
        const std::size_t stub = at + static_cast<std::size_t>(distance);
        REQUIRE(stub + 12 <= image.code_size);
        REQUIRE((word(image, stub) & 0x9f00001f) == 0x90000010); // adrp x16
        REQUIRE(word(image, stub + 8) == 0xd61f0200);            // br x16
        ++calls_of_stubs;
    }
    CHECK(calls_of_stubs == 3); // memset, memcpy, fmodf
    CHECK(image.relocations.size() == 3);
    for (const std::size_t target : adrp_targets(image)) {
        const auto slot = std::find_if(image.relocations.begin(), image.relocations.end(),
                                       [&](const auto& r) { return r.offset == target; });
        const bool is_slot = slot != image.relocations.end();
        CHECK(is_slot);
    }
}

TEST_CASE("image: AArch64 tables of function addresses") {
    const KernelImage image = image_of_ir(function_table, "aarch64");
    REQUIRE(image.relocations.size() == 2);
    for (const auto& relocation : image.relocations) CHECK(relocation.addend < image.code_size);
    const auto targets = adrp_targets(image);
    REQUIRE(targets.size() == 1);
    CHECK(targets[0] == image.relocations[0].offset);
}
