// SPDX-License-Identifier: Apache-2.0
// Fetches from textures: millions a second of one core, beside the same picture read by plain C++.
//   textures LIBCUDA [--ptxas PTXAS] [FORM...]
// With --ptxas the kernels are machine code for sm_90 that ptxas has made of them.
// An image of 1,024 x 1,024 is turned by a few degrees, eight fetches a thread; likewise a plane through a volume of
// 128 x 128 x 128, a mipmap of that image between its first two levels, and a sixth of a cube with sides of 512. What
// the C++ computes is not what a texture unit computes (weights of 8 bits, sums cut and rounded as the hardware does
// it), but its speed is what people compare with. One worker (PTARMIGAN_WORKERS=1 unless it is set), good code.
#include "runtime/shim/cuda_types.h"
#include "runtime/shim/texture_types.h"
#include "tests/recordings/driver.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

namespace {

using recordings::Driver;

struct Form {
    const char* name;
    unsigned format, channels; ///< CUarray_format
    bool linear, normalized;
    unsigned address;
    const char* fetch; ///< PTX words
    enum class Shape { plane, volume, mipmap, cube } shape = Shape::plane;
};
constexpr unsigned u8 = 1, u16 = 2, s16 = 9, half = 16, single = 32, wrap = 0, clamp = 1, border = 3, size = 1024;
constexpr unsigned fetches = 8, threads = 256, rounds = 30;

constexpr Form forms[] = {
    {"linear f32", single, 1, true, false, clamp, "tex.2d.v4.f32.f32"},
    {"linear f32, normalized, wrap", single, 1, true, true, wrap, "tex.2d.v4.f32.f32"},
    {"linear f32, border", single, 1, true, false, border, "tex.2d.v4.f32.f32"},
    {"linear f32 x 2", single, 2, true, false, clamp, "tex.2d.v4.f32.f32"},
    {"linear f32 x 4", single, 4, true, false, clamp, "tex.2d.v4.f32.f32"},
    {"linear u8", u8, 1, true, false, clamp, "tex.2d.v4.f32.f32"},
    {"linear u8 x 4, normalized, clamp", u8, 4, true, true, clamp, "tex.2d.v4.f32.f32"},
    {"linear f16 x 4", half, 4, true, false, clamp, "tex.2d.v4.f32.f32"},
    {"point f32", single, 1, false, false, clamp, "tex.2d.v4.f32.f32"},
    {"point u8 x 4", u8, 4, false, false, clamp, "tex.2d.v4.f32.f32"},
    {"texels f32 x 4", single, 4, false, false, clamp, "tex.2d.v4.f32.s32"},
    {"linear s16, normalized", s16, 1, true, true, clamp, "tex.2d.v4.f32.f32"},
    {"volume, linear f32", single, 1, true, true, clamp, "tex.3d.v4.f32.f32", Form::Shape::volume},
    {"volume, linear u8", u8, 1, true, true, clamp, "tex.3d.v4.f32.f32", Form::Shape::volume},
    {"volume, linear u16", u16, 1, true, true, clamp, "tex.3d.v4.f32.f32", Form::Shape::volume},
    {"volume, linear f32 x 4", single, 4, true, true, clamp, "tex.3d.v4.f32.f32", Form::Shape::volume},
    {"volume, point f32", single, 1, false, true, clamp, "tex.3d.v4.f32.f32", Form::Shape::volume},
    {"levels, linear f32", single, 1, true, true, wrap, "tex.level.2d.v4.f32.f32", Form::Shape::mipmap},
    {"levels, linear u8 x 4", u8, 4, true, true, wrap, "tex.level.2d.v4.f32.f32", Form::Shape::mipmap},
    {"gradients, linear u8 x 4", u8, 4, true, true, wrap, "tex.grad.2d.v4.f32.f32", Form::Shape::mipmap},
    {"cube, linear f32", single, 1, true, true, clamp, "tex.cube.v4.f32.f32", Form::Shape::cube},
    {"cube, linear u8 x 4", u8, 4, true, true, clamp, "tex.cube.v4.f32.f32", Form::Shape::cube},
    {"cube, linear f16 x 4", half, 4, true, true, clamp, "tex.cube.v4.f32.f32", Form::Shape::cube},
};

/// A thread's first place and the way between its fetches; its result is the sum of all channels of all fetches.
std::string kernel(const Form& form) {
    const std::string fetch = form.fetch;
    const bool whole = fetch.ends_with(".s32");
    std::string place = whole ? "%s0, %s1" : "%f3, %f4", more;
    if (form.shape == Form::Shape::volume) place += ", %f11, %f11";
    if (form.shape == Form::Shape::cube) place += ", %f12, %f12"; // the face of z
    if (fetch.starts_with("tex.level")) more = ", %f11";
    if (fetch.starts_with("tex.grad")) more = ", {%f13, %f14}, {%f14, %f13}";
    std::string text =
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry turn(.param .u64 texture, .param .u64 out, "
        ".param .f32 scale)\n{\n.reg .b64 %q<4>; .reg .b32 %r<6>; .reg .f32 %f<16>; .reg .b32 %s<2>;\n"
        "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r3, %r1, 256, %r2;\n"
        "ld.param.u64 %q1, [texture]; ld.param.f32 %f10, [scale];\n"
        "and.b32 %r4, %r3, 1023; shr.u32 %r5, %r3, 10; cvt.rn.f32.u32 %f1, %r4; cvt.rn.f32.u32 %f2, %r5;\n"
        "mul.f32 %f3, %f1, 0f3F7EC4EC; fma.rn.f32 %f3, %f2, 0fBDCAC083, %f3; mul.f32 %f3, %f3, %f10;\n"
        "mul.f32 %f4, %f2, 0f40FEC4EC; fma.rn.f32 %f4, %f1, 0f3DCAC083, %f4; mul.f32 %f4, %f4, %f10;\n"
        "mov.f32 %f9, 0f00000000; mov.f32 %f11, 0f3EAAAAAB; mov.f32 %f12, 0f3F800000; mul.f32 %f13, %f10, 0f3FA00000; "
        "mul.f32 %f14, %f10, 0f3DCCCCCD;\n";
    if (form.shape == Form::Shape::cube) // from 0..1 to -1..1
        text += "fma.rn.f32 %f3, %f3, 0f40000000, 0fBF800000; fma.rn.f32 %f4, %f4, 0f40000000, 0fBF800000;\n"
                "mul.f32 %f10, %f10, 0f40000000;\n";
    for (unsigned i = 0; i < fetches; ++i) {
        if (whole) text += "cvt.rzi.s32.f32 %s0, %f3; cvt.rzi.s32.f32 %s1, %f4;\n";
        text += fetch + " {%f5, %f6, %f7, %f8}, [%q1, {" + place + "}]" + more + ";\n";
        for (unsigned channel = 0; channel < form.channels; ++channel)
            text += "add.f32 %f9, %f9, %f" + std::to_string(5 + channel) + ";\n";
        text += "fma.rn.f32 %f3, %f10, 0fBDCAC083, %f3; fma.rn.f32 %f4, %f10, 0f3F7EC4EC, %f4;\n";
    }
    return text +
           "ld.param.u64 %q2, [out]; mul.wide.u32 %q3, %r3, 4; add.u64 %q2, %q2, %q3; st.global.f32 [%q2], %f9;\nret;\n}\n";
}

double processor_seconds() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

template <typename Body> double fastest(const Body& body) {
    double best = 1e9;
    for (unsigned round = 0; round < rounds; ++round) {
        const double start = processor_seconds();
        body();
        best = std::min(best, processor_seconds() - start);
    }
    return best;
}

constexpr unsigned pixels = size * size / fetches; ///< a thread's eight fetches go down a column

/// "linear f32" as C++ has it.
void turn_on_cpu(const std::vector<float>& image, std::vector<float>& out) {
    const float c = 0.9952f, s = 0.0990f;
#pragma omp simd
    for (unsigned i = 0; i < pixels; ++i) {
        float x = float(i & 1023) * c - float(i >> 10) * s, y = float(i >> 10) * 8 * c + float(i & 1023) * s, sum = 0;
        for (unsigned k = 0; k < fetches; ++k) {
            const float u = x - 0.5f, v = y - 0.5f, left = std::floor(u), top = std::floor(v), a = u - left,
                        b = v - top;
            const int x0 = std::clamp(int(left), 0, int(size) - 1), x1 = std::clamp(int(left) + 1, 0, int(size) - 1);
            const int y0 = std::clamp(int(top), 0, int(size) - 1), y1 = std::clamp(int(top) + 1, 0, int(size) - 1);
            const float *upper = &image[std::size_t(y0) * size], *lower = &image[std::size_t(y1) * size];
            const float above = upper[x0] + a * (upper[x1] - upper[x0]),
                        below = lower[x0] + a * (lower[x1] - lower[x0]);
            sum += above + b * (below - above);
            x -= s;
            y += c;
        }
        out[i] = sum;
    }
}

struct Extent {
    unsigned width, height, depth;
    std::size_t texels() const { return std::size_t{width} * height * depth; }
};

Extent extent_of(const Form& form) {
    if (form.shape == Form::Shape::volume) return {128, 128, 128};
    return form.shape == Form::Shape::cube ? Extent{512, 512, 6} : Extent{size, size, 1};
}

std::vector<unsigned char> picture(const Form& form, std::size_t texel_count) {
    const std::size_t count = texel_count * form.channels;
    const unsigned bytes = form.format == u8 ? 1 : form.format == single ? 4 : 2;
    std::vector<unsigned char> texels(count * bytes);
    for (std::size_t i = 0; i < count; ++i) {
        const unsigned noise = unsigned(i * 2654435761u) >> 8;
        const float value = float(noise & 4095) / 4096;
        const unsigned short as_half = static_cast<unsigned short>(0x3400 + (noise & 2047));
        if (bytes == 1) texels[i] = static_cast<unsigned char>(noise);
        if (bytes == 2) std::memcpy(&texels[2 * i], &as_half, 2);
        if (bytes == 4) std::memcpy(&texels[4 * i], &value, 4);
    }
    return texels;
}

void fill(Driver& driver, const Form& form, CUarray array, const Extent& extent) {
    const std::vector<unsigned char> texels = picture(form, extent.texels());
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = 1; // host
    copy.srcHost = texels.data();
    copy.WidthInBytes = copy.srcPitch = texels.size() / (extent.height * extent.depth);
    copy.dstMemoryType = 3; // array
    copy.dstArray = array;
    copy.Height = copy.srcHeight = extent.height;
    copy.Depth = extent.depth;
    driver.call<const CUDA_MEMCPY3D*>("cuMemcpy3D_v2", &copy);
}

CUtexObject make_texture(Driver& driver, const Form& form) {
    const Extent extent = extent_of(form);
    CUDA_ARRAY3D_DESCRIPTOR shape{};
    shape.Width = extent.width;
    shape.Height = extent.height;
    shape.Depth = extent.depth == 1 ? 0 : extent.depth;
    shape.Format = static_cast<decltype(shape.Format)>(form.format);
    shape.NumChannels = form.channels;
    shape.Flags = form.shape == Form::Shape::cube ? 4 : 0;
    CUDA_RESOURCE_DESC resource{};
    CUDA_TEXTURE_DESC sampler{};
    if (form.shape == Form::Shape::mipmap) {
        constexpr unsigned levels = 11;
        CUmipmappedArray mipmap{};
        driver.call<CUmipmappedArray*, const CUDA_ARRAY3D_DESCRIPTOR*, unsigned>("cuMipmappedArrayCreate", &mipmap,
                                                                                 &shape, levels);
        for (unsigned i = 0; i < levels; ++i) {
            CUarray level{};
            driver.call<CUarray*, CUmipmappedArray, unsigned>("cuMipmappedArrayGetLevel", &level, mipmap, i);
            fill(driver, form, level, {size >> i, size >> i, 1});
        }
        resource.resType = static_cast<decltype(resource.resType)>(1);
        resource.res.mipmap.hMipmappedArray = mipmap;
        sampler.mipmapFilterMode = static_cast<decltype(sampler.mipmapFilterMode)>(1);
        sampler.maxMipmapLevelClamp = levels;
    } else {
        CUarray array{};
        driver.call<CUarray*, const CUDA_ARRAY3D_DESCRIPTOR*>("cuArray3DCreate_v2", &array, &shape);
        fill(driver, form, array, extent);
        resource.res.array.hArray = array;
    }
    for (auto& mode : sampler.addressMode) mode = static_cast<std::remove_reference_t<decltype(mode)>>(form.address);
    sampler.filterMode = static_cast<decltype(sampler.filterMode)>(form.linear ? 1 : 0);
    sampler.flags = (form.normalized ? 2u : 0u) | (form.shape == Form::Shape::cube ? 0x40u : 0u); // seamless
    CUtexObject texture{};
    driver.call<CUtexObject*, const CUDA_RESOURCE_DESC*, const CUDA_TEXTURE_DESC*, const void*>(
        "cuTexObjectCreate", &texture, &resource, &sampler, nullptr);
    return texture;
}

} // namespace

/// What ptxas makes of a text.
std::string machine_code(const std::string& ptxas, const std::string& text) {
    const std::filesystem::path folder = std::filesystem::temp_directory_path();
    const std::string stem = (folder / ("bench_textures." + std::to_string(getpid()))).string();
    std::ofstream(stem + ".ptx") << text;
    const std::string command = ptxas + " -arch=sm_90 " + stem + ".ptx -o " + stem + ".cubin";
    if (std::system(command.c_str()) != 0) throw std::runtime_error("ptxas failed");
    std::ifstream file(stem + ".cubin", std::ios::binary);
    std::string code{std::istreambuf_iterator<char>(file), {}};
    std::filesystem::remove(stem + ".ptx");
    std::filesystem::remove(stem + ".cubin");
    return code;
}

int main(int argc, char** argv) try {
    if (argc < 2) {
        std::fprintf(stderr, "usage: %s LIBCUDA [--ptxas PTXAS] [FORM...]\n", argv[0]);
        return 2;
    }
    std::string ptxas;
    std::vector<std::string> wanted(argv + 2, argv + argc);
    if (wanted.size() > 1 && wanted[0] == "--ptxas") {
        ptxas = wanted[1];
        wanted.erase(wanted.begin(), wanted.begin() + 2);
    }
    setenv("PTARMIGAN_TIER", "best", 0);
    setenv("PTARMIGAN_WORKERS", "1", 0);
    Driver driver(argv[1]);
    recordings::Address out = driver.allocate(pixels * 4);
    std::printf("%-34s Mfetches/s\n", "form");
    for (const Form& form : forms) {
        if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), form.name) == wanted.end()) continue;
        CUtexObject texture = make_texture(driver, form);
        void* module = driver.load(ptxas.empty() ? kernel(form) : machine_code(ptxas, kernel(form)));
        float scale = form.normalized ? 1.0f / size : 1.0f;
        void* arguments[] = {&texture, &out, &scale};
        const double seconds = fastest([&] {
            driver.launch(module, "turn", pixels / threads, threads, 1, arguments);
            driver.call("cuCtxSynchronize");
        });
        std::printf("%-34s %8.1f\n", form.name, double(pixels) * fetches / seconds * 1e-6);
        driver.unload(module);
    }
    std::vector<float> image(std::size_t{size} * size), result(pixels);
    const std::vector<unsigned char> texels = picture(forms[0], std::size_t{size} * size);
    std::memcpy(image.data(), texels.data(), texels.size());
    const double seconds = fastest([&] { turn_on_cpu(image, result); });
    std::printf("%-34s %8.1f (%g)\n", "C++, one core, linear f32", double(pixels) * fetches / seconds * 1e-6,
                double(result[pixels / 2]));
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
