// SPDX-License-Identifier: Apache-2.0
// Texture and surface references, samplers of their own, multi-sample fetches of plain textures: codes, what references say, hashes of
// what kernels sample. Each group is a process of its own, because faults stick to a context.
//   texture_references LIBCUDA            prints
//   texture_references LIBCUDA RECORDING  compares with the output of a GPU's driver; "~" marks lines that are known to differ
#include "tests/recordings/textures/compare_lines.h"
#include "tests/recordings/textures/recording.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <sstream>

using namespace texture_recording;

namespace {

constexpr unsigned points = 256;

template <class... Arguments> int show(Driver& driver, const std::string& what, const char* name, Arguments... arguments) {
    const int code = driver.result<Arguments...>(name, arguments...);
    std::printf("%s: %d\n", what.c_str(), code);
    return code;
}

/// A kernel "k" of four parameters of 64 bits ([out], %d1 to %d3), whose `body` leaves 4 words in %r0 to %r3; %f0 to %f3 are coordinates
/// in -1.5 to 2.5, %r4 to %r7 whole numbers in 0 to 63.
std::string kernel(const std::string& target, const std::string& globals, const std::string& body) {
    return ".version 8.0\n.target " + target + "\n.address_size 64\n" + globals +
           "\n.visible .entry k(.param .u64 o, .param .u64 x, .param .u64 y, .param .u64 z)\n{\n"
           ".reg .b64 %d<8>; .reg .b32 %r<16>; .reg .f32 %f<8>; .reg .pred %p<4>;\n"
           "ld.param.u64 %d0, [o]; ld.param.u64 %d1, [x]; ld.param.u64 %d2, [y]; ld.param.u64 %d3, [z];\n"
           "mov.u32 %r8, %tid.x; mul.wide.u32 %d4, %r8, 16; add.u64 %d0, %d0, %d4;\n"
           "mul.lo.u32 %r9, %r8, 0x9e3779b1; shr.u32 %r10, %r9, 10; cvt.rn.f32.u32 %f0, %r10; mul.f32 %f0, %f0, 0f35800000; sub.f32 %f0, %f0, 0f3fc00000;\n"
           "mul.lo.u32 %r9, %r9, 0x85ebca77; shr.u32 %r10, %r9, 10; cvt.rn.f32.u32 %f1, %r10; mul.f32 %f1, %f1, 0f35800000; sub.f32 %f1, %f1, 0f3fc00000;\n"
           "mul.lo.u32 %r9, %r9, 0xc2b2ae3d; shr.u32 %r10, %r9, 10; cvt.rn.f32.u32 %f2, %r10; mul.f32 %f2, %f2, 0f35800000; mov.f32 %f3, %f2;\n"
           "and.b32 %r4, %r8, 63; shr.u32 %r5, %r8, 2; and.b32 %r6, %r8, 3; mov.b32 %r7, 0;\n"
           "mov.b32 %r0, 0; mov.b32 %r1, 0; mov.b32 %r2, 0; mov.b32 %r3, 0;\n" +
           body + "\nst.global.v4.b32 [%d0], {%r0, %r1, %r2, %r3};\nret;\n}\n";
}

/// Launches "k" with 256 threads and prints a hash of what it stored, and the first words.
void launch(Driver& driver, const std::string& what, CUmodule module, std::uint64_t x = 0, std::uint64_t y = 0, std::uint64_t z = 0) {
    std::vector<std::uint32_t> values(std::size_t{points} * 4, 0xcdcdcdcd);
    try {
        CUfunction function = nullptr;
        driver.call<CUfunction*, CUmodule, const char*>("cuModuleGetFunction", &function, module, "k");
        CUdeviceptr result = driver.upload(values.data(), values.size() * 4);
        void* parameters[] = {&result, &x, &y, &z};
        driver.launch(function, 1, points, parameters);
        driver.call("cuCtxSynchronize");
        driver.call("cuMemcpyDtoH_v2", static_cast<void*>(values.data()), result, values.size() * 4);
        std::printf("%s: %016llx %08x %08x %08x %08x\n", what.c_str(),
                    static_cast<unsigned long long>(seed_of({reinterpret_cast<const char*>(values.data()), values.size() * 4})), values[0], values[1],
                    values[2], values[3]);
    } catch (const DriverError& error) {
        std::printf("%s: %s\n", what.c_str(), error.what());
    }
    std::fflush(stdout);
}

CUarray make_array(Driver& driver, CUDA_ARRAY3D_DESCRIPTOR shape, std::size_t texel, unsigned seed = 1) {
    CUarray array = nullptr;
    driver.call("cuArray3DCreate_v2", &array, static_cast<const CUDA_ARRAY3D_DESCRIPTOR*>(&shape));
    const std::size_t rows = std::max<std::size_t>(shape.Height, 1) * std::max<std::size_t>(shape.Depth, 1);
    std::vector<std::uint8_t> bytes(shape.Width * texel * rows);
    Random random(seed);
    if (shape.Format == 0x20)
        for (std::size_t i = 0; i < bytes.size(); i += 4) {
            const float value = random.between(-4, 4);
            std::memcpy(&bytes[i], &value, 4);
        }
    else
        for (auto& byte : bytes) byte = std::uint8_t(random.bits() >> 24);
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = 1;
    copy.srcHost = bytes.data();
    copy.srcPitch = copy.WidthInBytes = shape.Width * texel;
    copy.dstMemoryType = 3;
    copy.dstArray = array;
    copy.srcHeight = copy.Height = std::max<std::size_t>(shape.Height, 1);
    copy.Depth = std::max<std::size_t>(shape.Depth, 1);
    driver.call("cuMemcpy3D_v2", static_cast<const CUDA_MEMCPY3D*>(&copy));
    return array;
}

CUarray plane(Driver& driver, unsigned seed = 1) { return make_array(driver, {16, 8, 0, 0x20, 4, 2}, 16, seed); }

CUtexref texture_reference(Driver& driver, CUmodule module, const char* name) {
    CUtexref reference = nullptr;
    driver.call<CUtexref*, CUmodule, const char*>("cuModuleGetTexRef", &reference, module, name);
    return reference;
}

/// Everything that a reference says.
void describe(Driver& driver, CUtexref reference) {
    int address[3] = {-1, -1, -1}, filter = -1, format = -1, channels = -1, anisotropy = -1, between = -1;
    unsigned flags = 0xcdcd;
    float bias = -99, low = -99, high = -99, border[4] = {-99, -99, -99, -99};
    CUarray array = nullptr;
    CUmipmappedArray mipmap = nullptr;
    CUdeviceptr pointer = 1;
    std::printf("  codes");
    for (int i = 0; i < 3; ++i) std::printf(" %d", driver.result<int*, CUtexref, int>("cuTexRefGetAddressMode", &address[i], reference, i));
    std::printf(" %d", driver.result<int*, CUtexref>("cuTexRefGetFilterMode", &filter, reference));
    std::printf(" %d", driver.result<unsigned*, CUtexref>("cuTexRefGetFlags", &flags, reference));
    std::printf(" %d", driver.result<int*, int*, CUtexref>("cuTexRefGetFormat", &format, &channels, reference));
    std::printf(" %d", driver.result<int*, CUtexref>("cuTexRefGetMaxAnisotropy", &anisotropy, reference));
    std::printf(" %d", driver.result<int*, CUtexref>("cuTexRefGetMipmapFilterMode", &between, reference));
    std::printf(" %d", driver.result<float*, CUtexref>("cuTexRefGetMipmapLevelBias", &bias, reference));
    std::printf(" %d", driver.result<float*, float*, CUtexref>("cuTexRefGetMipmapLevelClamp", &low, &high, reference));
    std::printf(" %d", driver.result<float*, CUtexref>("cuTexRefGetBorderColor", border, reference));
    std::printf(" %d", driver.result<CUarray*, CUtexref>("cuTexRefGetArray", &array, reference));
    std::printf(" %d", driver.result<CUmipmappedArray*, CUtexref>("cuTexRefGetMipmappedArray", &mipmap, reference));
    std::printf(" %d\n", driver.result<CUdeviceptr*, CUtexref>("cuTexRefGetAddress_v2", &pointer, reference));
    std::printf("  address %d%d%d filter %d flags %x format %x x%d anisotropy %d between %d bias %g clamp %g %g border %g %g array %d mipmap %d pointer %d\n", address[0],
                address[1], address[2], filter, flags, format, channels, anisotropy, between, bias, low, high, border[0], border[3], array != nullptr,
                mipmap != nullptr, int(pointer > 1 ? 2 : pointer));
}

const char* const all_declarations = ".global .texref t;\n.global .surfref s;\n.global .texref u;\n.global .b32 g;\n";
const std::string fetch_2d = "tex.2d.v4.f32.f32 {%f4,%f5,%f6,%f7}, [t, {%f0,%f1}]; mov.b32 %r0, %f4; mov.b32 %r1, %f5; mov.b32 %r2, %f6; mov.b32 %r3, %f7;";

void names(Driver& driver) {
    CUmodule module = driver.load(kernel("sm_90", all_declarations, fetch_2d));
    for (const char* name : {"t", "s", "g", "k", "u", "missing", ""}) {
        CUtexref texture = nullptr;
        CUsurfref surface = nullptr;
        CUdeviceptr pointer = 0;
        std::size_t bytes = 0;
        show<CUtexref*, CUmodule, const char*>(driver, std::string("cuModuleGetTexRef ") + name, "cuModuleGetTexRef", &texture, module, name);
        show<CUsurfref*, CUmodule, const char*>(driver, std::string("cuModuleGetSurfRef ") + name, "cuModuleGetSurfRef", &surface, module, name);
        const int code = driver.result<CUdeviceptr*, std::size_t*, CUmodule, const char*>("cuModuleGetGlobal_v2", &pointer, &bytes, module, name);
        std::printf("cuModuleGetGlobal %s: %d %zu\n", name, code, bytes);
    }
    CUtexref a = texture_reference(driver, module, "t"), b = texture_reference(driver, module, "t");
    std::printf("same pointer: %d\n", a == b);
    show<CUtexref*, CUmodule, const char*>(driver, "null result", "cuModuleGetTexRef", nullptr, module, "t");
    show<CUtexref*, CUmodule, const char*>(driver, "null name", "cuModuleGetTexRef", &a, module, nullptr);
    show<CUtexref*, CUmodule, const char*>(driver, "null module", "cuModuleGetTexRef", &a, nullptr, "t");
    describe(driver, b);
    CUtexref made = nullptr;
    if (show(driver, "cuTexRefCreate", "cuTexRefCreate", &made) == 0) {
        describe(driver, made);
        show(driver, "cuTexRefDestroy", "cuTexRefDestroy", made);
    }
    show(driver, "cuTexRefDestroy of a module's", "cuTexRefDestroy", b);
    show<CUtexref>(driver, "cuTexRefDestroy null", "cuTexRefDestroy", nullptr);
}

void setters(Driver& driver) {
    CUmodule module = driver.load(kernel("sm_90", all_declarations, fetch_2d));
    CUtexref t = texture_reference(driver, module, "t");
    for (int dim : {0, 1, 2, 3, -1})
        for (int mode : {0, 1, 2, 3, 4, -1})
            show<CUtexref, int, int>(driver, "cuTexRefSetAddressMode " + std::to_string(dim) + ' ' + std::to_string(mode), "cuTexRefSetAddressMode", t, dim, mode);
    for (int mode : {0, 1, 2, -1}) show<CUtexref, int>(driver, "cuTexRefSetFilterMode " + std::to_string(mode), "cuTexRefSetFilterMode", t, mode);
    for (int mode : {0, 1, 2, -1}) show<CUtexref, int>(driver, "cuTexRefSetMipmapFilterMode " + std::to_string(mode), "cuTexRefSetMipmapFilterMode", t, mode);
    for (unsigned flags : {0u, 1u, 2u, 3u, 4u, 8u, 0x10u, 0x20u, 0x40u, 0x80u, 0xffffffffu}) {
        show<CUtexref, unsigned>(driver, "cuTexRefSetFlags " + std::to_string(flags), "cuTexRefSetFlags", t, flags);
        describe(driver, t);
    }
    driver.result<CUtexref, unsigned>("cuTexRefSetFlags", t, 0);
    for (int format : {0, 1, 2, 3, 8, 9, 0xa, 0x10, 0x20, 0x21, 0xc0, 0x91})
        for (int channels : {0, 1, 2, 3, 4, 5})
            show<CUtexref, int, int>(driver, "cuTexRefSetFormat " + std::to_string(format) + 'x' + std::to_string(channels), "cuTexRefSetFormat", t, format, channels);
    for (unsigned most : {0u, 1u, 4u, 16u, 17u, 100u}) {
        show<CUtexref, unsigned>(driver, "cuTexRefSetMaxAnisotropy " + std::to_string(most), "cuTexRefSetMaxAnisotropy", t, most);
        int back = -1;
        driver.result<int*, CUtexref>("cuTexRefGetMaxAnisotropy", &back, t);
        std::printf("  %d\n", back);
    }
    show<CUtexref, float>(driver, "cuTexRefSetMipmapLevelBias", "cuTexRefSetMipmapLevelBias", t, 1.5f);
    show<CUtexref, float, float>(driver, "cuTexRefSetMipmapLevelClamp", "cuTexRefSetMipmapLevelClamp", t, 0.5f, 2.5f);
    float border[4] = {1, 2, 3, 4};
    show<CUtexref, float*>(driver, "cuTexRefSetBorderColor", "cuTexRefSetBorderColor", t, border);
    show<CUtexref, float*>(driver, "cuTexRefSetBorderColor null", "cuTexRefSetBorderColor", t, nullptr);
    describe(driver, t);
    CUarray array = plane(driver);
    for (unsigned flags : {0u, 1u, 2u, 3u}) {
        show<CUtexref, CUarray, unsigned>(driver, "cuTexRefSetArray " + std::to_string(flags), "cuTexRefSetArray", t, array, flags);
        describe(driver, t);
    }
    show<CUtexref, CUarray, unsigned>(driver, "cuTexRefSetArray null array", "cuTexRefSetArray", t, nullptr, 1);
    describe(driver, t);
    show<CUtexref, CUarray, unsigned>(driver, "cuTexRefSetArray null reference", "cuTexRefSetArray", nullptr, array, 1);
    CUmipmappedArray mipmap = nullptr;
    CUDA_ARRAY3D_DESCRIPTOR shape{16, 8, 0, 0x20, 4, 0};
    driver.call("cuMipmappedArrayCreate", &mipmap, static_cast<const CUDA_ARRAY3D_DESCRIPTOR*>(&shape), 3u);
    show<CUtexref, CUmipmappedArray, unsigned>(driver, "cuTexRefSetMipmappedArray", "cuTexRefSetMipmappedArray", t, mipmap, 1);
    describe(driver, t);
    std::vector<float> data(4096);
    for (unsigned i = 0; i < data.size(); ++i) data[i] = float(i);
    const CUdeviceptr memory = driver.upload(data.data(), data.size() * 4);
    driver.call<CUtexref, int, int>("cuTexRefSetFormat", t, 0x20, 1);
    for (std::size_t offset : {0, 4, 16, 256, 512}) {
        std::size_t behind = 99;
        const int code = driver.result<std::size_t*, CUtexref, CUdeviceptr, std::size_t>("cuTexRefSetAddress_v2", &behind, t, memory + offset, 4096);
        std::printf("cuTexRefSetAddress +%zu: %d offset %zu\n", offset, code, behind);
    }
    describe(driver, t);
    show<std::size_t*, CUtexref, CUdeviceptr, std::size_t>(driver, "cuTexRefSetAddress without offset", "cuTexRefSetAddress_v2", nullptr, t, memory, 4096);
    show<std::size_t*, CUtexref, CUdeviceptr, std::size_t>(driver, "cuTexRefSetAddress without offset +4", "cuTexRefSetAddress_v2", nullptr, t, memory + 4, 4096);
    std::size_t behind = 99;
    show<std::size_t*, CUtexref, CUdeviceptr, std::size_t>(driver, "cuTexRefSetAddress 0", "cuTexRefSetAddress_v2", &behind, t, 0, 4096);
    show<std::size_t*, CUtexref, CUdeviceptr, std::size_t>(driver, "cuTexRefSetAddress 0 bytes", "cuTexRefSetAddress_v2", &behind, t, memory, 0);
    show<std::size_t*, CUtexref, CUdeviceptr, std::size_t>(driver, "cuTexRefSetAddress too many", "cuTexRefSetAddress_v2", &behind, t, memory, std::size_t{1} << 40);
    for (const auto& [width, height, pitch, offset] : {std::array<std::size_t, 4>{16, 8, 64, 0}, {16, 8, 128, 0}, {16, 8, 128, 4}, {16, 8, 128, 512}, {16, 8, 100, 0}, {16, 0, 128, 0}, {200000, 8, 128, 0}}) {
        CUDA_ARRAY_DESCRIPTOR flat{width, height, 0x20, 1};
        std::ostringstream name;
        name << "cuTexRefSetAddress2D " << width << 'x' << height << " pitch " << pitch << " +" << offset;
        show<CUtexref, const CUDA_ARRAY_DESCRIPTOR*, CUdeviceptr, std::size_t>(driver, name.str() + " v3", "cuTexRefSetAddress2D_v3", t, &flat, memory + offset, pitch);
        show<CUtexref, const CUDA_ARRAY_DESCRIPTOR*, CUdeviceptr, std::size_t>(driver, name.str() + " v2", "cuTexRefSetAddress2D_v2", t, &flat, memory + offset, pitch);
    }
    describe(driver, t);
    CUsurfref s = nullptr;
    driver.call<CUsurfref*, CUmodule, const char*>("cuModuleGetSurfRef", &s, module, "s");
    CUarray back = nullptr;
    show(driver, "cuSurfRefGetArray unset", "cuSurfRefGetArray", &back, s);
    for (unsigned flags : {0u, 1u}) show<CUsurfref, CUarray, unsigned>(driver, "cuSurfRefSetArray " + std::to_string(flags), "cuSurfRefSetArray", s, array, flags);
    show(driver, "cuSurfRefGetArray", "cuSurfRefGetArray", &back, s);
    std::printf("same array: %d\n", back == array);
    show<CUsurfref, CUarray, unsigned>(driver, "cuSurfRefSetArray without surfaces", "cuSurfRefSetArray", s, make_array(driver, {16, 8, 0, 0x20, 4, 0}, 16), 0);
    show<CUsurfref, CUarray, unsigned>(driver, "cuSurfRefSetArray null", "cuSurfRefSetArray", s, nullptr, 0);
    driver.result<CUarray*, CUtexref>("cuTexRefGetArray", &back, t);
}

/// Samples a reference in many settings, set before and after the array.
void samples(Driver& driver) {
    CUmodule module = driver.load(kernel("sm_90", all_declarations, fetch_2d));
    CUtexref t = texture_reference(driver, module, "t");
    CUarray array = plane(driver), other = plane(driver, 2), bytes = make_array(driver, {16, 8, 0, 1, 4, 0}, 4), wide = make_array(driver, {16, 8, 0, 3, 4, 0}, 16);
    driver.call<CUtexref, CUarray, unsigned>("cuTexRefSetArray", t, array, 1);
    launch(driver, "array, defaults", module);
    for (unsigned flags : {0u, 2u})
        for (int mode : {0, 1, 2, 3})
            for (int filter : {0, 1}) {
                driver.call<CUtexref, unsigned>("cuTexRefSetFlags", t, flags);
                for (int dim : {0, 1}) driver.call<CUtexref, int, int>("cuTexRefSetAddressMode", t, dim, mode);
                driver.call<CUtexref, int>("cuTexRefSetFilterMode", t, filter);
                launch(driver, "flags " + std::to_string(flags) + " address " + std::to_string(mode) + " filter " + std::to_string(filter), module);
            }
    float border[4] = {1, 2, 3, 4};
    driver.call<CUtexref, float*>("cuTexRefSetBorderColor", t, border);
    launch(driver, "border", module);
    driver.call<CUtexref, CUarray, unsigned>("cuTexRefSetArray", t, other, 1);
    launch(driver, "another array", module);
    driver.call<CUtexref, CUarray, unsigned>("cuTexRefSetArray", t, bytes, 1);
    launch(driver, "bytes", module);
    driver.call<CUtexref, unsigned>("cuTexRefSetFlags", t, 0x12);
    launch(driver, "bytes srgb", module);
    driver.call<CUtexref, unsigned>("cuTexRefSetFlags", t, 3);
    launch(driver, "bytes as integers, filter linear", module);
    driver.call<CUtexref, int>("cuTexRefSetFilterMode", t, 0);
    launch(driver, "bytes as integers", module);
    driver.call<CUtexref, int, int>("cuTexRefSetFormat", t, 8, 4);
    launch(driver, "bytes, another format", module);
    driver.call<CUtexref, CUarray, unsigned>("cuTexRefSetArray", t, wide, 1);
    driver.call<CUtexref, unsigned>("cuTexRefSetFlags", t, 2);
    launch(driver, "words", module);
    CUmipmappedArray mipmap = nullptr;
    CUDA_ARRAY3D_DESCRIPTOR shape{16, 8, 0, 0x20, 4, 0};
    driver.call("cuMipmappedArrayCreate", &mipmap, static_cast<const CUDA_ARRAY3D_DESCRIPTOR*>(&shape), 3u);
    driver.call<CUtexref, CUmipmappedArray, unsigned>("cuTexRefSetMipmappedArray", t, mipmap, 1);
    launch(driver, "mipmap of zeros", module);
    // Two references, other geometries.
    CUmodule two = driver.load(kernel("sm_90", ".global .texref a;\n.global .texref t;\n.global .texref b;\n",
                                      "tex.2d.v4.f32.f32 {%f4,%f5,%f6,%f7}, [t, {%f0,%f1}]; mov.b32 %r0, %f4; mov.b32 %r1, %f5;\n"
                                      "tex.2d.v4.f32.f32 {%f4,%f5,%f6,%f7}, [a, {%f0,%f1}]; mov.b32 %r2, %f4; mov.b32 %r3, %f5;"));
    driver.call<CUtexref, CUarray, unsigned>("cuTexRefSetArray", texture_reference(driver, two, "a"), array, 1);
    driver.call<CUtexref, CUarray, unsigned>("cuTexRefSetArray", texture_reference(driver, two, "t"), other, 1);
    launch(driver, "two references", two);
    CUmodule line = driver.load(kernel("sm_90", ".global .texref t;\n", "tex.1d.v4.u32.s32 {%r0,%r1,%r2,%r3}, [t, {%r8}];"));
    CUtexref l = texture_reference(driver, line, "t");
    std::vector<std::uint32_t> data(4096);
    for (unsigned i = 0; i < data.size(); ++i) data[i] = i * 0x9e3779b1;
    const CUdeviceptr memory = driver.upload(data.data(), data.size() * 4);
    for (int channels : {1, 2, 4}) {
        driver.call<CUtexref, int, int>("cuTexRefSetFormat", l, 3, channels);
        driver.call<CUtexref, unsigned>("cuTexRefSetFlags", l, 1);
        std::size_t offset = 0;
        driver.call<std::size_t*, CUtexref, CUdeviceptr, std::size_t>("cuTexRefSetAddress_v2", &offset, l, memory, 1000);
        launch(driver, "linear memory x" + std::to_string(channels), line);
    }
    CUDA_ARRAY_DESCRIPTOR flat{16, 8, 0x20, 1};
    driver.call<CUtexref, int, int>("cuTexRefSetFormat", t, 0x20, 1);
    for (unsigned flags : {0u, 2u})
        for (int filter : {0, 1}) {
            driver.call<CUtexref, unsigned>("cuTexRefSetFlags", t, flags);
            driver.call<CUtexref, int>("cuTexRefSetFilterMode", t, filter);
            driver.call<CUtexref, const CUDA_ARRAY_DESCRIPTOR*, CUdeviceptr, std::size_t>("cuTexRefSetAddress2D_v3", t, &flat, memory, 128);
            launch(driver, "pitched flags " + std::to_string(flags) + " filter " + std::to_string(filter), module);
        }
    // What queries say, what addresses are, indirect fetches through the address.
    for (const char* word : {"width", "height", "depth", "channel_data_type", "channel_order", "normalized_coords", "array_size", "num_mipmap_levels", "num_samples", "filter_mode",
                             "addr_mode_0", "addr_mode_1", "addr_mode_2"}) {
        try {
            CUmodule asks = driver.load(kernel("sm_90", ".global .texref t;\n", std::string("txq.") + word + ".b32 %r0, [t];"));
            CUtexref r = texture_reference(driver, asks, "t");
            driver.call<CUtexref, CUarray, unsigned>("cuTexRefSetArray", r, array, 1);
            launch(driver, std::string("txq.") + word, asks);
        } catch (const DriverError& error) {
            std::printf("txq.%s: %s\n", word, error.what());
        }
    }
    CUmodule address = driver.load(kernel("sm_90", ".global .texref t;\n.global .surfref s;\n",
                                          "mov.u64 %d5, t; mov.u64 %d6, s; shr.u64 %d5, %d5, 32; cvt.u32.u64 %r0, %d5; shr.u64 %d6, %d6, 32; cvt.u32.u64 %r1, %d6;\n"
                                          "mov.u64 %d5, t; istypep.texref %p0, %d5; selp.b32 %r2, 1, 0, %p0; istypep.surfref %p0, %d5; selp.b32 %r3, 1, 0, %p0;"));
    launch(driver, "high words of addresses", address);
    CUmodule indirect = driver.load(kernel("sm_90", ".global .texref t;\n", "mov.u64 %d5, t; tex.2d.v4.f32.f32 {%f4,%f5,%f6,%f7}, [%d5, {%f0,%f1}]; mov.b32 %r0, %f4; mov.b32 %r1, %f5; mov.b32 %r2, %f6; mov.b32 %r3, %f7;"));
    driver.call<CUtexref, CUarray, unsigned>("cuTexRefSetArray", texture_reference(driver, indirect, "t"), array, 1);
    launch(driver, "through the address", indirect);
    CUmodule select = driver.load(kernel("sm_90", ".global .texref a;\n.global .texref t;\n", "mov.u64 %d5, t; mov.u64 %d6, a; setp.gt.u32 %p0, %r8, 37; selp.b64 %d5, %d5, %d6, %p0;\n"
                                         "tex.2d.v4.f32.f32 {%f4,%f5,%f6,%f7}, [%d5, {%f0,%f1}]; mov.b32 %r0, %f4; mov.b32 %r1, %f5; mov.b32 %r2, %f6; mov.b32 %r3, %f7;"));
    driver.call<CUtexref, CUarray, unsigned>("cuTexRefSetArray", texture_reference(driver, select, "a"), array, 1);
    driver.call<CUtexref, CUarray, unsigned>("cuTexRefSetArray", texture_reference(driver, select, "t"), other, 1);
    launch(driver, "a choice of two", select);
    CUmodule surface = driver.load(kernel("sm_90", ".global .surfref s;\n", "shl.b32 %r4, %r4, 4; and.b32 %r4, %r4, 255; and.b32 %r5, %r5, 7; suld.b.2d.v4.b32.zero {%r0,%r1,%r2,%r3}, [s, {%r4,%r5}];"));
    CUsurfref s = nullptr;
    driver.call<CUsurfref*, CUmodule, const char*>("cuModuleGetSurfRef", &s, surface, "s");
    driver.call<CUsurfref, CUarray, unsigned>("cuSurfRefSetArray", s, array, 0);
    launch(driver, "surface", surface);
}

void initialised(Driver& driver) {
    for (const char* init : {"{ filter_mode = linear, normalized_coords = 1, addr_mode_0 = wrap }", "{ normalized_coords = 1 }", "{ addr_mode_0 = clamp_to_border, width = 3, height = 4 }"}) {
        try {
            CUmodule module = driver.load(kernel("sm_90", std::string(".global .texref t = ") + init + ";\n", fetch_2d));
            CUtexref t = texture_reference(driver, module, "t");
            std::printf("initialised %s\n", init);
            describe(driver, t);
            driver.call<CUtexref, CUarray, unsigned>("cuTexRefSetArray", t, plane(driver), 1);
            launch(driver, "  fetch", module);
        } catch (const DriverError& error) {
            std::printf("initialised %s: %s\n", init, error.what());
        }
    }
    CUmodule module = nullptr;
    const std::string text = kernel("sm_90", ".global .texref t[4];\n", "");
    show<CUmodule*, const void*>(driver, "load an array of references", "cuModuleLoadData", &module, text.c_str());
}

void unbound(Driver& driver) { launch(driver, "never set", driver.load(kernel("sm_90", all_declarations, fetch_2d))); }
void unbound_surface(Driver& driver) {
    launch(driver, "surface never set", driver.load(kernel("sm_90", all_declarations, "and.b32 %r4, %r4, 3; suld.b.1d.b32.trap %r0, [s, {%r4}];")));
}
void destroyed(Driver& driver) {
    CUmodule module = driver.load(kernel("sm_90", all_declarations, fetch_2d));
    CUtexref t = texture_reference(driver, module, "t");
    CUarray array = plane(driver);
    driver.call<CUtexref, CUarray, unsigned>("cuTexRefSetArray", t, array, 1);
    show(driver, "cuArrayDestroy of a bound array", "cuArrayDestroy", array);
    CUarray back = nullptr;
    show(driver, "cuTexRefGetArray behind it", "cuTexRefGetArray", &back, t);
    show(driver, "cuModuleUnload", "cuModuleUnload", module);
}
void bad_reference(Driver& driver) {
    int mode = 0;
    show<int*, CUtexref, int>(driver, "cuTexRefGetAddressMode null", "cuTexRefGetAddressMode", &mode, nullptr, 0);
    CUmodule module = driver.load(kernel("sm_90", all_declarations, fetch_2d));
    show<int*, CUtexref, int>(driver, "cuTexRefGetAddressMode null result", "cuTexRefGetAddressMode", nullptr, texture_reference(driver, module, "t"), 0);
    CUfunction function = nullptr;
    driver.call<CUfunction*, CUmodule, const char*>("cuModuleGetFunction", &function, module, "k");
    show<CUfunction, int, CUtexref>(driver, "cuParamSetTexRef default", "cuParamSetTexRef", function, -1, texture_reference(driver, module, "t"));
    show<CUfunction, int, CUtexref>(driver, "cuParamSetTexRef 0", "cuParamSetTexRef", function, 0, texture_reference(driver, module, "t"));
}

CUtexObject object_of(Driver& driver, CUarray array, unsigned address, unsigned filter, unsigned flags) {
    CUDA_RESOURCE_DESC resource{};
    resource.res.array.hArray = array;
    CUDA_TEXTURE_DESC sampler{{address, address, address}, filter, flags, 0, 0, 0, 0, 0, {1, 2, 3, 4}, {}};
    CUtexObject object = 0;
    driver.call<CUtexObject*, CUDA_RESOURCE_DESC*, CUDA_TEXTURE_DESC*, void*>("cuTexObjectCreate", &object, &resource, &sampler, nullptr);
    return object;
}

/// Images of one object with samplers of another.
void separate_objects(Driver& driver) {
    const std::string target = "sm_90, texmode_independent";
    CUmodule module = driver.load(kernel(target, "", "tex.2d.v4.f32.f32 {%f4,%f5,%f6,%f7}, [%d1, %d2, {%f0,%f1}]; mov.b32 %r0, %f4; mov.b32 %r1, %f5; mov.b32 %r2, %f6; mov.b32 %r3, %f7;"));
    CUmodule integers = driver.load(kernel(target, "", "tex.2d.v4.u32.s32 {%r0,%r1,%r2,%r3}, [%d1, %d2, {%r4,%r5}];"));
    CUmodule gather = driver.load(kernel(target, "", "tld4.g.2d.v4.u32.f32 {%r0,%r1,%r2,%r3}, [%d1, %d2, {%f0,%f1}];"));
    CUmodule level = driver.load(kernel(target, "", "tex.level.2d.v4.u32.f32 {%r0,%r1,%r2,%r3}, [%d1, %d2, {%f0,%f1}], %f2;"));
    CUmodule grad = driver.load(kernel(target, "", "tex.grad.2d.v4.u32.f32 {%r0,%r1,%r2,%r3}, [%d1, %d2, {%f0,%f1}], {%f2, %f1}, {%f0, %f2};"));
    CUmodule packed = driver.load(kernel(target, "", "tex.2d.v2.f16x2.f32 {%r0,%r1}, [%d1, %d2, {%f0,%f1}];"));
    CUmodule base = driver.load(kernel(target, "", "tex.base.2d.v4.u32.f32 {%r0,%r1,%r2,%r3}, [%d1, %d2, {%f0,%f1}];"));
    CUmodule choice = driver.load(kernel(target, "", "and.b32 %r9, %r8, 1; setp.eq.u32 %p0, %r9, 0; selp.b64 %d5, %d2, %d3, %p0;"
                                         " tex.2d.v4.u32.f32 {%r0,%r1,%r2,%r3}, [%d1, %d5, {%f0,%f1}];"));
    CUmodule ask = driver.load(kernel(target, "", "txq.width.b32 %r0, [%d1]; txq.height.b32 %r1, [%d1];"));
    CUarray one = plane(driver), two = plane(driver, 2);
    CUarray bytes = make_array(driver, {16, 8, 0, 1, 4, 0}, 4);
    const CUtexObject image = object_of(driver, one, 0, 0, 2), integer = object_of(driver, bytes, 0, 0, 1), real = object_of(driver, bytes, 1, 1, 2),
                      gamma = object_of(driver, bytes, 1, 1, 0x12), unnormalized = object_of(driver, one, 1, 0, 0);
    for (unsigned flags : {0u, 2u})
        for (unsigned address : {0u, 1u, 2u, 3u})
            for (unsigned filter : {0u, 1u}) {
                const CUtexObject sampler = object_of(driver, two, address, filter, flags);
                const std::string name = "sampler flags " + std::to_string(flags) + " address " + std::to_string(address) + " filter " + std::to_string(filter);
                launch(driver, name, module, image, sampler);
                launch(driver, name + " unnormalized image", module, unnormalized, sampler);
                launch(driver, name + " integers", integers, image, sampler);
                launch(driver, name + " gather", gather, image, sampler);
                launch(driver, name + " level", level, image, sampler);
                launch(driver, name + " gradients", grad, image, sampler);
                launch(driver, name + " packed", packed, image, sampler);
                launch(driver, name + " base", base, image, sampler);
                launch(driver, name + " bytes", module, real, sampler);
                launch(driver, name + " bytes as integers", module, integer, sampler);
                launch(driver, name + " gamma", module, gamma, sampler);
                launch(driver, name + " choice", choice, image, sampler, gamma);
                launch(driver, name + " high words", module, image | 0xabcd000000000000, sampler | 0x1234567800000000);
                launch(driver, name + " only the sampler's bits", module, image & 0xfffff, sampler & 0xfff00000);
            }
    launch(driver, "gamma sampler of a plain image", module, real, gamma);
    launch(driver, "plain sampler of a gamma image", module, gamma, real);
    launch(driver, "image 0", module, 0, image);
    launch(driver, "sampler 0", module, image, 0);
    launch(driver, "sampler 4095", module, image, 0xfff00000);
    launch(driver, "sizes", ask, image, real);
    // levels belong to which of the two?
    CUmipmappedArray mipmap = nullptr;
    CUDA_ARRAY3D_DESCRIPTOR shape{16, 8, 0, 0x20, 4, 0};
    driver.call("cuMipmappedArrayCreate", &mipmap, static_cast<const CUDA_ARRAY3D_DESCRIPTOR*>(&shape), 4u);
    for (unsigned l = 0; l < 4; ++l) {
        CUarray array = nullptr;
        driver.call("cuMipmappedArrayGetLevel", &array, mipmap, l);
        const std::size_t width = 16u >> l, height = 8u >> l;
        std::vector<float> texels(width * height * 4);
        Random random(7 + l);
        for (float& texel : texels) texel = random.between(-4, 4);
        CUDA_MEMCPY2D copy{};
        copy.srcMemoryType = 1;
        copy.srcHost = texels.data();
        copy.dstMemoryType = 3;
        copy.dstArray = array;
        copy.WidthInBytes = copy.srcPitch = width * 16;
        copy.Height = height;
        driver.call("cuMemcpy2D_v2", static_cast<const CUDA_MEMCPY2D*>(&copy));
    }
    const auto leveled = [&](unsigned between, float bias, float low, float high) {
        CUDA_RESOURCE_DESC resource{};
        resource.resType = 1;
        resource.res.mipmap.hMipmappedArray = mipmap;
        CUDA_TEXTURE_DESC sampler{{0, 0, 0}, 1, 2, 0, between, bias, low, high, {1, 2, 3, 4}, {}};
        CUtexObject object = 0;
        driver.call<CUtexObject*, CUDA_RESOURCE_DESC*, CUDA_TEXTURE_DESC*, void*>("cuTexObjectCreate", &object, &resource, &sampler, nullptr);
        return object;
    };
    CUmodule far = driver.load(kernel(target, "", "mul.f32 %f2, %f2, 0f40000000; tex.level.2d.v4.u32.f32 {%r0,%r1,%r2,%r3}, [%d1, %d2, {%f0,%f1}], %f2;"));
    const CUtexObject whole = leveled(1, 0, 0, 99), part = leveled(0, 0.5f, 1, 2), plain = object_of(driver, two, 0, 1, 2);
    launch(driver, "levels whole whole", far, whole, whole);
    launch(driver, "levels whole part", far, whole, part);
    launch(driver, "levels part whole", far, part, whole);
    launch(driver, "levels whole plain", far, whole, plain);
    launch(driver, "levels plain whole", far, plain, whole);
    launch(driver, "levels whole unnormalized", far, whole, unnormalized);
}

/// Sampler variables with initialisers, texture variables without.
void separate_variables(Driver& driver) {
    const std::string target = "sm_90, texmode_independent";
    const char* const samplers[] = {"", " = { filter_mode = linear }", " = { addr_mode_0 = clamp_to_border, addr_mode_1 = wrap, filter_mode = linear }",
                                    " = { addr_mode_0 = mirror, addr_mode_1 = clamp_ogl, filter_mode = nearest }", " = { addr_mode_0 = clamp_to_edge, addr_mode_1 = clamp_to_edge, filter_mode = linear, force_unnormalized_coords = 1 }",
                                    " = { force_unnormalized_coords = 0, filter_mode = linear, addr_mode_0 = wrap }"};
    CUarray array = plane(driver);
    for (const char* init : samplers) {
        std::printf("samplerref%s\n", init);
        try {
            CUmodule module = driver.load(kernel(target, std::string(".global .texref t;\n.global .samplerref m") + init + ";\n",
                "tex.2d.v4.f32.f32 {%f4,%f5,%f6,%f7}, [t, m, {%f0,%f1}]; mov.b32 %r0, %f4; mov.b32 %r1, %f5; mov.b32 %r2, %f6; mov.b32 %r3, %f7;"));
            CUtexref t = nullptr, m = nullptr;
            show<CUtexref*, CUmodule, const char*>(driver, "  cuModuleGetTexRef of the sampler", "cuModuleGetTexRef", &m, module, "m");
            if (m) describe(driver, m);
            if (show<CUtexref*, CUmodule, const char*>(driver, "  cuModuleGetTexRef of the texture", "cuModuleGetTexRef", &t, module, "t")) continue;
            describe(driver, t);
            driver.call<CUtexref, CUarray, unsigned>("cuTexRefSetArray", t, array, 1);
            launch(driver, "  fetch", module);
            driver.call<CUtexref, unsigned>("cuTexRefSetFlags", t, 2);
            driver.call<CUtexref, int, int>("cuTexRefSetAddressMode", t, 0, 2);
            driver.call<CUtexref, int>("cuTexRefSetFilterMode", t, 1);
            launch(driver, "  fetch with the reference set", module);
            for (const char* word : {"filter_mode", "addr_mode_0", "force_unnormalized_coords"}) {
                CUmodule asks = driver.load(kernel(target, std::string(".global .samplerref m") + init + ";\n", std::string("txq.") + word + ".b32 %r0, [m];"));
                launch(driver, std::string("  txq.") + word, asks);
            }
        } catch (const DriverError& error) {
            std::printf("  %s\n", error.what());
        }
    }
}

/// Multi-sample fetches, which CUDA has no textures for: of plain ones.
void multi_sample(Driver& driver) {
    CUarray array = plane(driver);
    const CUtexObject object = object_of(driver, array, 1, 0, 1);
    CUarray layers = make_array(driver, {16, 8, 3, 0x20, 4, 1}, 16);
    const CUtexObject layered = object_of(driver, layers, 1, 0, 1);
    launch(driver, "2dms sample 0", driver.load(kernel("sm_90", "", "and.b32 %r4, %r4, 15; and.b32 %r5, %r5, 7; mov.b32 %r6, 0; tex.2dms.v4.u32.s32 {%r0,%r1,%r2,%r3}, [%d1, {%r6,%r4,%r5,%r5}];")), object);
    launch(driver, "2dms samples", driver.load(kernel("sm_90", "", "and.b32 %r4, %r4, 15; and.b32 %r5, %r5, 7; tex.2dms.v4.u32.s32 {%r0,%r1,%r2,%r3}, [%d1, {%r6,%r4,%r5,%r5}];")), object);
    launch(driver, "2dms outside", driver.load(kernel("sm_90", "", "sub.s32 %r4, %r4, 20; sub.s32 %r5, %r5, 20; mov.b32 %r6, 0; tex.2dms.v4.u32.s32 {%r0,%r1,%r2,%r3}, [%d1, {%r6,%r4,%r5,%r5}];")), object);
    launch(driver, "a2dms sample 0", driver.load(kernel("sm_90", "", "and.b32 %r4, %r4, 15; and.b32 %r5, %r5, 7; mov.b32 %r7, 0; tex.a2dms.v4.u32.s32 {%r0,%r1,%r2,%r3}, [%d1, {%r7,%r6,%r4,%r5}];")), layered);
    launch(driver, "a2dms samples", driver.load(kernel("sm_90", "", "and.b32 %r4, %r4, 15; and.b32 %r5, %r5, 7; mov.b32 %r7, %r6; tex.a2dms.v4.u32.s32 {%r0,%r1,%r2,%r3}, [%d1, {%r7,%r6,%r4,%r5}];")), layered);
    launch(driver, "2dms of layers", driver.load(kernel("sm_90", "", "and.b32 %r4, %r4, 15; and.b32 %r5, %r5, 7; mov.b32 %r6, 0; tex.2dms.v4.u32.s32 {%r0,%r1,%r2,%r3}, [%d1, {%r6,%r4,%r5,%r5}];")), layered);
}

struct Group {
    const char* name;
    void (*run)(Driver&);
};
constexpr Group groups[] = {{"names", names}, {"setters", setters}, {"samples", samples}, {"initialised", initialised}, {"unbound", unbound},
                            {"unbound surface", unbound_surface}, {"destroyed", destroyed}, {"bad references", bad_reference},
                            {"separate objects", separate_objects}, {"separate variables", separate_variables}, {"multi-sample", multi_sample}};

/// What a group prints, run in a process of its own.
std::string output_of(const char* library, const Group& group) {
    int ends[2];
    if (pipe(ends)) throw std::runtime_error("no pipe");
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        setvbuf(stdout, nullptr, _IOLBF, 0);
        std::printf("== %s\n", group.name);
        try {
            Driver driver(library);
            group.run(driver);
        } catch (const std::exception& error) {
            std::printf("ended: %s\n", error.what());
        }
        std::fflush(stdout);
        _exit(0);
    }
    close(ends[1]);
    std::string text;
    char piece[4096];
    for (ssize_t got; (got = read(ends[0], piece, sizeof piece)) > 0;) text.append(piece, std::size_t(got));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) text += "signal " + std::to_string(WTERMSIG(status)) + '\n';
    return text;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 2 || argc > 3) {
        std::fprintf(stderr, "usage: texture_references LIBCUDA [RECORDING]\n");
        return 2;
    }
    std::string all;
    for (const Group& group : groups) all += output_of(argv[1], group);
    if (argc == 2) return std::fputs(all.c_str(), stdout) < 0;
    std::istringstream ours(all);
    std::ifstream recording(argv[2]);
    return compare_lines(ours, recording);
}
