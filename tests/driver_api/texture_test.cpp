// SPDX-License-Identifier: Apache-2.0
// Arrays, textures and surfaces: what calls answer and what kernels see where numbers are exact. How filters round is
// compared with an H200 in tests/recordings/textures.
#include "tests/driver_api/driver.h"

#include "runtime/shim/texture_types.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iterator>
#include <vector>

extern "C" {
CUresult cuArrayCreate_v2(CUarray*, const CUDA_ARRAY_DESCRIPTOR*);
CUresult cuArray3DCreate_v2(CUarray*, const CUDA_ARRAY3D_DESCRIPTOR*);
CUresult cuArrayDestroy(CUarray);
CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR*, CUarray);
CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR*, CUarray);
CUresult cuMipmappedArrayCreate(CUmipmappedArray*, const CUDA_ARRAY3D_DESCRIPTOR*, unsigned);
CUresult cuMipmappedArrayGetLevel(CUarray*, CUmipmappedArray, unsigned);
CUresult cuMipmappedArrayDestroy(CUmipmappedArray);
CUresult cuMemcpyHtoA_v2(CUarray, std::size_t, const void*, std::size_t);
CUresult cuMemcpyAtoH_v2(void*, CUarray, std::size_t, std::size_t);
CUresult cuMemcpyAtoA_v2(CUarray, std::size_t, CUarray, std::size_t, std::size_t);
CUresult cuMemcpyAtoD_v2(CUdeviceptr, CUarray, std::size_t, std::size_t);
CUresult cuMemcpyDtoA_v2(CUarray, std::size_t, CUdeviceptr, std::size_t);
CUresult cuTexObjectCreate(CUtexObject*, const CUDA_RESOURCE_DESC*, const CUDA_TEXTURE_DESC*, const CUDA_RESOURCE_VIEW_DESC*);
CUresult cuTexObjectDestroy(CUtexObject);
CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC*, CUtexObject);
CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC*, CUtexObject);
CUresult cuSurfObjectCreate(CUsurfObject*, const CUDA_RESOURCE_DESC*);
CUresult cuSurfObjectDestroy(CUsurfObject);
CUresult cuTensorMapSetAllocationClass(void*, int, int*);
}

namespace {

constexpr unsigned u8 = 1, u32 = 3, f32 = 32;
constexpr unsigned point = 0, linear = 1;
constexpr unsigned normalized = 2, as_integer = 1;
using Words = std::array<std::uint32_t, 4>;

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }
Words reals(float a, float b, float c, float d) { return {bits(a), bits(b), bits(c), bits(d)}; }

/// An array with its texels copied in by cuMemcpy3D.
CUarray make_array(const CUDA_ARRAY3D_DESCRIPTOR& shape, const void* texels, std::size_t texel_bytes) {
    driver_test::context();
    CUarray array = nullptr;
    REQUIRE(cuArray3DCreate_v2(&array, &shape) == 0);
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = 1;
    copy.srcHost = texels;
    copy.dstMemoryType = 3;
    copy.dstArray = array;
    copy.WidthInBytes = shape.Width * texel_bytes;
    copy.Height = shape.Height ? shape.Height : 1;
    copy.Depth = shape.Depth ? shape.Depth : 1;
    REQUIRE(cuMemcpy3D_v2(&copy) == 0);
    return array;
}

CUDA_RESOURCE_DESC resource_of(CUarray array) {
    CUDA_RESOURCE_DESC resource{};
    resource.res.array.hArray = array;
    return resource;
}

CUtexObject make_texture(const CUDA_RESOURCE_DESC& resource, unsigned filter, unsigned address, unsigned flags) {
    CUDA_TEXTURE_DESC sampler{};
    sampler.filterMode = filter;
    sampler.flags = flags;
    sampler.maxMipmapLevelClamp = 99;
    for (unsigned& mode : sampler.addressMode) mode = address;
    CUtexObject texture = 0;
    REQUIRE(cuTexObjectCreate(&texture, &resource, &sampler, nullptr) == 0);
    return texture;
}

/// Runs `statement` in one thread: %d0 is the object, %r0..%r3 the words in and out, %p0 false, %w0 and %w1 of 64 bits.
Words run(const std::string& statement, CUtexObject object, Words words = {}) {
    const std::string text = ".version 8.1\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 t, .param .u64 m)\n{\n.reg .b64 %d<2>;\n.reg .b32 %r<4>;\n.reg .b16 %h<4>;\n.reg .b64 %w<2>;\n.reg .pred %p<1>;\n"
        "ld.param.u64 %d0, [t];\nld.param.u64 %d1, [m];\nld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%d1];\n" + statement +
        "\nst.global.v4.b32 [%d1], {%r0, %r1, %r2, %r3};\nret;\n}\n";
    CUmodule module = nullptr;
    REQUIRE(cuModuleLoadData(&module, text.c_str()) == 0);
    CUfunction function = nullptr;
    REQUIRE(cuModuleGetFunction(&function, module, "k") == 0);
    CUdeviceptr memory = driver_test::allocate(16);
    REQUIRE(cuMemcpyHtoD_v2(memory, words.data(), 16) == 0);
    void* parameters[] = {&object, &memory};
    REQUIRE(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) == 0);
    REQUIRE(cuMemcpyDtoH_v2(words.data(), memory, 16) == 0);
    REQUIRE(cuMemFree_v2(memory) == 0);
    REQUIRE(cuModuleUnload(module) == 0);
    return words;
}

/// 4 x 2 texels of four floats: x, y, x + 10 y, 1.
CUarray plane(unsigned flags = 0) {
    std::vector<float> texels;
    for (unsigned y = 0; y < 2; ++y)
        for (unsigned x = 0; x < 4; ++x)
            for (float value : {float(x), float(y), float(x + 10 * y), 1.0f}) texels.push_back(value);
    return make_array({4, 2, 0, f32, 4, flags}, texels.data(), 16);
}

} // namespace

TEST_CASE("textures: points, filters and addresses of a plane") {
    CUarray array = plane();
    const std::string fetch = "tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%d0, {%r0, %r1}];";
    CUtexObject nearest = make_texture(resource_of(array), point, 1, 0);
    CHECK(run(fetch, nearest, reals(2.75f, 1.25f, 0, 0)) == reals(2, 1, 12, 1));
    CHECK(run(fetch, nearest, reals(-5, 7, 0, 0)) == reals(0, 1, 10, 1));
    CHECK(run("tex.2d.v4.f32.s32 {%r0, %r1, %r2, %r3}, [%d0, {%r0, %r1}];", nearest, {3, 1, 0, 0}) == reals(3, 1, 13, 1));
    CUtexObject smooth = make_texture(resource_of(array), linear, 1, 0);
    CHECK(run(fetch, smooth, reals(1.25f, 1.0f, 0, 0)) == reals(0.75f, 0.5f, 5.75f, 1));
    CUtexObject wrapped = make_texture(resource_of(array), point, 0, normalized);
    CHECK(run(fetch, wrapped, reals(1.125f, -0.25f, 0, 0)) == reals(0, 1, 10, 1));
    CUtexObject outside = make_texture(resource_of(array), linear, 3, normalized);
    CHECK(run(fetch, outside, reals(0, 0.25f, 0, 0)) == reals(0, 0, 0, 0.5f));
    CHECK(run("tld4.b.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%d0, {%r0, %r1}];", nearest, reals(2, 1, 0, 0)) == reals(11, 12, 2, 1));
    for (CUtexObject object : {nearest, smooth, wrapped, outside}) CHECK(cuTexObjectDestroy(object) == 0);
    CHECK(cuArrayDestroy(array) == 0);
}

TEST_CASE("textures: results in halves, queries") {
    CUarray array = plane(2);
    CUtexObject texture = make_texture(resource_of(array), point, 1, 0);
    CHECK(run("tex.2d.v2.f16x2.f32 {%r2, %r3}, [%d0, {%r0, %r1}];", texture, reals(3, 0, 0, 0))[2] == 0x4200);
    CHECK(run("tex.2d.v4.f16.f32 {%h0, %h1, %h2, %h3}, [%d0, {%r0, %r1}]; cvt.u32.u16 %r0, %h2;", texture, reals(1, 1, 0, 0))[0] == 0x4980);
    CHECK(run("txq.width.b32 %r0, [%d0]; txq.height.b32 %r1, [%d0];", texture)[0] == 4);
    CHECK(run("txq.width.b32 %r0, [%d0]; txq.height.b32 %r1, [%d0];", texture)[1] == 2);
    CHECK(run("txq.level.width.b32 %r0, [%d0], %r1;", texture)[0] == 4);
    CUsurfObject surface = 0;
    const CUDA_RESOURCE_DESC resource = resource_of(array);
    REQUIRE(cuSurfObjectCreate(&surface, &resource) == 0);
    CHECK(run("suq.width.b32 %r0, [%d0];", surface)[0] == 4);
    CHECK(cuSurfObjectDestroy(surface) == 0);
    CHECK(cuTexObjectDestroy(texture) == 0);
    CHECK(cuArrayDestroy(array) == 0);
}

// By the code that ptxas makes for sm_90; what is no reference (an object, a number) was recorded: false.
TEST_CASE("textures: what istypep takes for references") {
    for (unsigned upper : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u}) {
        const CUtexObject handle = CUtexObject(upper) << 61 | 0x123;
        const Words said = run("istypep.texref %p0, %d0; selp.b32 %r0, 1, 0, %p0; istypep.samplerref %p0, %d0; selp.b32 %r1, 1, 0, %p0;"
                               " istypep.surfref %p0, %d0; selp.b32 %r2, 1, 0, %p0;", handle);
        CHECK(said == Words{upper & 1, upper >> 1 & 1, upper >> 2, 0});
    }
}

TEST_CASE("textures: levels of a mipmap") {
    driver_test::context();
    const CUDA_ARRAY3D_DESCRIPTOR shape{8, 4, 0, f32, 1, 0};
    CUmipmappedArray mipmap = nullptr;
    REQUIRE(cuMipmappedArrayCreate(&mipmap, &shape, 3) == 0);
    for (unsigned level = 0; level < 3; ++level) {
        CUarray array = nullptr;
        REQUIRE(cuMipmappedArrayGetLevel(&array, mipmap, level) == 0);
        CUDA_ARRAY_DESCRIPTOR back{};
        REQUIRE(cuArrayGetDescriptor_v2(&back, array) == 0);
        CHECK(back.Width == 8u >> level);
        CHECK(back.Height == 4u >> level);
        const std::vector<float> texels(back.Width * back.Height, float(level));
        CUDA_MEMCPY2D copy{};
        copy.srcMemoryType = 1;
        copy.srcHost = texels.data();
        copy.dstMemoryType = 3;
        copy.dstArray = array;
        copy.WidthInBytes = back.Width * 4;
        copy.Height = back.Height;
        REQUIRE(cuMemcpy2D_v2(&copy) == 0);
        CHECK(cuArrayDestroy(array) != 0);
    }
    CUarray none = nullptr;
    CHECK(cuMipmappedArrayGetLevel(&none, mipmap, 3) == 1);
    CUDA_RESOURCE_DESC resource{};
    resource.resType = 1;
    resource.res.mipmap.hMipmappedArray = mipmap;
    CUtexObject texture = make_texture(resource, point, 1, normalized);
    CHECK(run("tex.level.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%d0, {%r0, %r1}], %r2;", texture, reals(0.5f, 0.5f, 2, 0))[0] == bits(2));
    CHECK(run("tex.base.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%d0, {%r0, %r1}];", texture, reals(0.5f, 0.5f, 2, 0))[0] == bits(0));
    CHECK(run("tex.grad.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%d0, {%r0, %r1}], {%r2, %r3}, {%r3, %r3};", texture,
              reals(0.5f, 0.5f, 0.25f, 0))[0] == bits(1));
    CHECK(run("tex.level.2d.v2.f16x2.f32 {%r0, %r1}, [%d0, {%r0, %r1}], %r2;", texture, reals(0.5f, 0.5f, 1, 0))[0] == 0x3c00);
    CHECK(run("tex.base.2d.v2.f16x2.f32 {%r0, %r1}, [%d0, {%r0, %r1}];", texture, reals(0.5f, 0.5f, 1, 0))[0] == 0);
    CHECK(run("tex.grad.2d.v2.f16x2.f32 {%r0, %r1}, [%d0, {%r0, %r1}], {%r2, %r3}, {%r3, %r3};", texture,
              reals(0.5f, 0.5f, 0.25f, 0))[0] == 0x3c00);
    CHECK(cuTexObjectDestroy(texture) == 0);
    CHECK(cuMipmappedArrayDestroy(mipmap) == 0);
}

TEST_CASE("textures: a cube's faces as machine code, which divides the coordinates itself") {
    constexpr unsigned width = 16, faces = 6, cube_flag = 4;
    std::vector<float> texels(faces * width * width);
    for (std::size_t i = 0; i < texels.size(); ++i) texels[i] = static_cast<float>(i * 7919 % 1009) * 0.37f;
    CUDA_ARRAY3D_DESCRIPTOR shape{width, width, faces, f32, 1, cube_flag};
    CUarray array = make_array(shape, texels.data(), 4);
    CUtexObject texture = make_texture(resource_of(array), linear, 0, normalized);
    std::vector<std::uint32_t> expected;
    for (const char* file : {"cube_faces.ptx", "cube_faces.sm_80.cubin", "cube_faces.sm_90.cubin"}) {
        CAPTURE(file);
        CUmodule module = nullptr;
        CUfunction function = nullptr;
        REQUIRE(cuModuleLoad(&module, (std::string(PTARMIGAN_SOURCE_DIR "/tests/programs/cubin/") + file).c_str()) == 0);
        REQUIRE(cuModuleGetFunction(&function, module, "cube_faces") == 0);
        int edge = 2 * width; // between texels, and over the edges of faces
        const std::size_t count = faces * static_cast<std::size_t>(edge) * static_cast<std::size_t>(edge);
        CUdeviceptr out = driver_test::allocate(4 * count);
        void* parameters[] = {&out, &edge, &texture};
        REQUIRE(cuLaunchKernel(function, width / 4, width / 4, 1, 8, 8, 1, 0, nullptr, parameters, nullptr) == 0);
        std::vector<std::uint32_t> words(count);
        REQUIRE(cuMemcpyDtoH_v2(words.data(), out, 4 * count) == 0);
        if (expected.empty()) expected = words;
        CHECK(words == expected);
        CHECK(std::count(words.begin(), words.end(), 0u) == 0);
        CHECK(cuMemFree_v2(out) == 0);
        CHECK(cuModuleUnload(module) == 0);
    }
    CHECK(cuTexObjectDestroy(texture) == 0);
    CHECK(cuArrayDestroy(array) == 0);
}

TEST_CASE("textures: linear and pitched memory") {
    driver_test::context();
    std::vector<std::uint8_t> bytes(256);
    for (unsigned i = 0; i < 256; ++i) bytes[i] = std::uint8_t(i);
    CUdeviceptr memory = driver_test::allocate(256);
    REQUIRE(cuMemcpyHtoD_v2(memory, bytes.data(), 256) == 0);
    CUDA_RESOURCE_DESC resource{};
    resource.resType = 2;
    resource.res.linear = {memory, u8, 4, 64};
    CUtexObject line = make_texture(resource, point, 1, as_integer);
    CHECK(run("tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [%d0, {%r0}];", line, {2, 0, 0, 0}) == Words{8, 9, 10, 11});
    resource = {};
    resource.resType = 3;
    resource.res.pitch2D = {memory, u8, 1, 20, 4, 64};
    CUtexObject pitched = make_texture(resource, point, 1, as_integer);
    CHECK(run("tex.2d.v4.u32.f32 {%r0, %r1, %r2, %r3}, [%d0, {%r0, %r1}];", pitched, reals(100, 2, 0, 0))[0] == 2 * 64 + 19);
    CUtexObject scaled = make_texture(resource, point, 1, 0);
    CHECK(run("tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%d0, {%r0, %r1}];", scaled, reals(1, 0, 0, 0))[0] == bits(1 / 255.0f));
    resource.res.pitch2D.width = 0;
    CUtexObject empty = make_texture(resource, linear, 1, 0);
    CHECK(run("tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%d0, {%r0, %r1}];", empty, reals(1, 0, 0, 0)) == Words{});
    CHECK(run("tld4.r.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%d0, {%r0, %r1}];", empty, reals(1, 0, 0, 0)) == Words{});
    for (CUtexObject object : {line, pitched, scaled, empty}) CHECK(cuTexObjectDestroy(object) == 0);
    CHECK(cuMemFree_v2(memory) == 0);
}

TEST_CASE("surfaces: loads, stores and reductions") {
    const std::vector<std::uint32_t> zeros(16, 0);
    CUarray array = make_array({4, 4, 0, u32, 1, 2}, zeros.data(), 4);
    const CUDA_RESOURCE_DESC resource = resource_of(array);
    CUsurfObject surface = 0;
    REQUIRE(cuSurfObjectCreate(&surface, &resource) == 0);
    const auto at = [](std::uint32_t x, std::uint32_t y, std::uint32_t value) { return Words{x, y, value, 0}; };
    const std::string load = "suld.b.2d.b32.zero %r0, [%d0, {%r0, %r1}];";
    run("sust.b.2d.b32.trap [%d0, {%r0, %r1}], %r2;", surface, at(4, 2, 77));
    CHECK(run(load, surface, at(4, 2, 0))[0] == 77);
    CHECK(run(load, surface, at(16, 2, 0))[0] == 0);
    CHECK(run("suld.b.2d.b32.clamp %r0, [%d0, {%r0, %r1}];", surface, at(4, 2, 0))[0] == 77);
    run("sust.b.2d.b32.zero [%d0, {%r0, %r1}], %r2;", surface, at(4, 4, 5)); // dropped
    run("sured.b.add.2d.u32.trap [%d0, {%r0, %r1}], %r2;", surface, at(4, 2, 3));
    CHECK(run(load, surface, at(4, 2, 0))[0] == 80);
    run("sured.b.min.2d.s32.trap [%d0, {%r0, %r1}], %r2;", surface, at(4, 2, ~0u));
    CHECK(run(load, surface, at(4, 2, 0))[0] == ~0u);
    run("sured.b.and.2d.b32.trap [%d0, {%r0, %r1}], %r2;", surface, at(4, 2, 0xf0));
    run("sured.p.or.2d.b32.trap [%d0, {%r0, %r1}], %r2;", surface, at(1, 2, 0x100));
    CHECK(run(load, surface, at(4, 2, 0))[0] == 0x1f0);
    run("sust.p.2d.b32.trap [%d0, {%r0, %r1}], %r2;", surface, at(3, 3, 9));
    CHECK(run("suld.b.2d.v2.b16.trap {%h0, %h1}, [%d0, {%r0, %r1}]; cvt.u32.u16 %r0, %h0;", surface, at(12, 3, 0))[0] == 9);
    run("mov.b64 %w0, {%r2, %r2}; sured.p.max.2d.b64.zero [%d0, {%r3, %r1}], %w0;", surface, at(0, 0, 6));
    CHECK(run("suld.b.2d.b64.zero %w0, [%d0, {%r0, %r1}]; mov.b64 {%r0, %r1}, %w0;", surface, at(0, 0, 0)) == Words{6, 6, 0, 0});
    // More registers than the words say: one element, which all of them get and the first one gives.
    run("sust.b.2d.b32.trap [%d0, {%r0, %r1}], {%r2, %r3};", surface, {4, 1, 21, 22});
    run("sust.p.2d.b32.trap [%d0, {%r0, %r1}], {%r2, %r3, %r1, %r0};", surface, {2, 1, 23, 24});
    CHECK(run("suld.b.2d.v2.b32.trap {%r0, %r1}, [%d0, {%r0, %r1}];", surface, at(0, 1, 9)) == Words{0, 21, 9, 0});
    CHECK(run("suld.b.2d.v2.b32.trap {%r0, %r1}, [%d0, {%r0, %r1}];", surface, at(8, 1, 9)) == Words{23, 0, 9, 0});
    CHECK(run("suld.b.2d.b32.trap {%r0, %r1, %r2, _}, [%d0, {%r0, %r1}];", surface, {4, 1, 9, 8}) == Words{21, 21, 21, 8});
    CHECK(run("suld.b.2d.b64.trap {%w0, %w1}, [%d0, {%r0, %r1}]; mov.b64 {%r0, %r1}, %w0; mov.b64 {%r2, %r3}, %w1;", surface, at(0, 1, 0)) == Words{0, 21, 0, 21});
    CHECK(run("suld.b.2d.b8.trap {%h0, %h1}, [%d0, {%r0, %r1}]; cvt.u32.u16 %r0, %h0; cvt.u32.u16 %r1, %h1;", surface, at(8, 1, 0)) == Words{23, 23, 0, 0});
    // One register for a vector: its first element.
    run("sust.b.2d.v2.b32.trap [%d0, {%r0, %r1}], %r2;", surface, at(8, 2, 31));
    CHECK(run(load, surface, at(8, 2, 0))[0] == 31);
    run("cvt.u16.u32 %h0, %r2; sust.b.2d.v4.b8.trap [%d0, {%r0, %r1}], %h0;", surface, at(8, 2, 0x55));
    CHECK(run(load, surface, at(8, 2, 0))[0] == 0x55);
    run("sust.p.2d.v4.b32.trap [%d0, {%r0, %r1}], %r2;", surface, at(3, 2, 33));
    CHECK(run(load, surface, at(12, 2, 0))[0] == 33);
    CHECK(cuSurfObjectDestroy(surface) == 0);
    CHECK(cuArrayDestroy(array) == 0);
}

TEST_CASE("textures: a handle that is none reads zeros, one that was destroyed still reads") {
    CUarray array = plane();
    CUtexObject texture = make_texture(resource_of(array), point, 1, 0);
    CHECK(cuTexObjectDestroy(texture) == 0);
    const std::string fetch = "tex.2d.v4.f32.s32 {%r0, %r1, %r2, %r3}, [%d0, {%r0, %r1}];";
    for (CUtexObject handle : {CUtexObject{0}, CUtexObject{900000}, CUtexObject{1} << 40})
        CHECK(run(fetch, handle, {1, 1, 3, 4}) == Words{});
    CHECK(run("suld.b.2d.b32.trap %r0, [%d0, {%r0, %r1}];", 900000, {4, 2, 3, 4})[0] == 0);
    CHECK(run(fetch, texture, {1, 1, 3, 4}) == reals(1, 1, 11, 1));
    CHECK(cuArrayDestroy(array) == 0);
}

TEST_CASE("arrays: copies of lines stay inside") {
    driver_test::context();
    const CUDA_ARRAY_DESCRIPTOR shape{64, 0, u8, 1};
    CUarray a = nullptr, b = nullptr;
    REQUIRE(cuArrayCreate_v2(&a, &shape) == 0);
    REQUIRE(cuArrayCreate_v2(&b, &shape) == 0);
    std::array<std::uint8_t, 64> out{}, in{};
    for (unsigned i = 0; i < 64; ++i) out[i] = std::uint8_t(i);
    CHECK(cuMemcpyHtoA_v2(a, 0, out.data(), 64) == 0);
    CHECK(cuMemcpyHtoA_v2(a, 1, out.data(), 64) == 1);
    CHECK(cuMemcpyAtoA_v2(b, 8, a, 4, 16) == 0);
    CHECK(cuMemcpyAtoH_v2(in.data(), b, 8, 16) == 0);
    CHECK(in[15] == 19);
    CUdeviceptr memory = driver_test::allocate(64);
    CHECK(cuMemcpyAtoD_v2(memory, a, 60, 4) == 0);
    CHECK(cuMemcpyDtoA_v2(b, 0, memory, 4) == 0);
    CHECK(cuMemcpyAtoH_v2(in.data(), b, 0, 4) == 0);
    CHECK(in[0] == 60);
    CHECK(cuMemFree_v2(memory) == 0);
    CHECK(cuArrayDestroy(a) == 0);
    CHECK(cuArrayDestroy(b) == 0);
    CHECK(cuArrayDestroy(b) == 400);
}

TEST_CASE("tensor maps: the class of an allocation changes nothing") {
    driver_test::context();
    unsigned char map[128];
    std::fill(std::begin(map), std::end(map), static_cast<unsigned char>(0x5a));
    for (int asked = 0; asked <= 2; ++asked) {
        int in_effect = -1;
        CHECK(cuTensorMapSetAllocationClass(map, asked, &in_effect) == 0);
        CHECK(in_effect == 1);
        CHECK(cuTensorMapSetAllocationClass(map, asked, nullptr) == 0);
    }
    CHECK(std::all_of(std::begin(map), std::end(map), [](unsigned char byte) { return byte == 0x5a; }));
    int in_effect = -1;
    CHECK(cuTensorMapSetAllocationClass(map, 3, &in_effect) == 1);
    CHECK(in_effect == 1);
    CHECK(cuTensorMapSetAllocationClass(nullptr, 1, nullptr) == 1);
}
