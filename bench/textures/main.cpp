// SPDX-License-Identifier: Apache-2.0
// Fetches from textures: millions a second of one core, beside the same picture read by plain C++.
//   textures LIBCUDA [FORM...]
// An image of 1,024 x 1,024 is turned by a few degrees, eight fetches a thread. What the C++ computes is not what a
// texture unit computes (weights of 8 bits, sums cut and rounded as the hardware does it), but its speed is what people
// compare with. One worker (PTARMIGAN_WORKERS=1 unless it is set), good code.
#include "runtime/shim/cuda_types.h"
#include "runtime/shim/texture_types.h"
#include "tests/recordings/driver.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using recordings::Driver;

struct Form {
    const char* name;
    unsigned format, channels; ///< CUarray_format
    bool linear, normalized;
    unsigned address;
    const char* fetch; ///< PTX words
};
constexpr unsigned u8 = 1, half = 16, single = 32, wrap = 0, clamp = 1, border = 3, size = 1024;
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
};

/// A thread's first place and the way between its fetches; its result is the sum of all channels of all fetches.
std::string kernel(const Form& form) {
    const std::string fetch = form.fetch;
    const bool whole = fetch.ends_with(".s32");
    std::string text =
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry turn(.param .u64 texture, .param .u64 out, "
        ".param .f32 scale)\n{\n.reg .b64 %q<4>; .reg .b32 %r<6>; .reg .f32 %f<16>; .reg .b32 %s<2>;\n"
        "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r3, %r1, 256, %r2;\n"
        "ld.param.u64 %q1, [texture]; ld.param.f32 %f10, [scale];\n"
        "and.b32 %r4, %r3, 1023; shr.u32 %r5, %r3, 10; cvt.rn.f32.u32 %f1, %r4; cvt.rn.f32.u32 %f2, %r5;\n"
        "mul.f32 %f3, %f1, 0f3F7EC4EC; fma.rn.f32 %f3, %f2, 0fBDCAC083, %f3; mul.f32 %f3, %f3, %f10;\n"
        "mul.f32 %f4, %f2, 0f40FEC4EC; fma.rn.f32 %f4, %f1, 0f3DCAC083, %f4; mul.f32 %f4, %f4, %f10;\n"
        "mov.f32 %f9, 0f00000000;\n";
    for (unsigned i = 0; i < fetches; ++i) {
        if (whole) text += "cvt.rzi.s32.f32 %s0, %f3; cvt.rzi.s32.f32 %s1, %f4;\n";
        text += fetch + " {%f5, %f6, %f7, %f8}, [%q1, {" + (whole ? "%s0, %s1" : "%f3, %f4") + "}];\n";
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

CUtexObject make_texture(Driver& driver, const Form& form, const std::vector<unsigned char>& texels) {
    CUDA_ARRAY3D_DESCRIPTOR shape{};
    shape.Width = shape.Height = size;
    shape.Format = static_cast<decltype(shape.Format)>(form.format);
    shape.NumChannels = form.channels;
    CUarray array{};
    driver.call<CUarray*, const CUDA_ARRAY3D_DESCRIPTOR*>("cuArray3DCreate_v2", &array, &shape);
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = 1; // host
    copy.srcHost = texels.data();
    copy.srcPitch = copy.WidthInBytes = texels.size() / size;
    copy.dstMemoryType = 3; // array
    copy.dstArray = array;
    copy.Height = size;
    driver.call<const CUDA_MEMCPY2D*>("cuMemcpy2D_v2", &copy);
    CUDA_RESOURCE_DESC resource{};
    resource.res.array.hArray = array;
    CUDA_TEXTURE_DESC sampler{};
    for (auto& mode : sampler.addressMode) mode = static_cast<std::remove_reference_t<decltype(mode)>>(form.address);
    sampler.filterMode = static_cast<decltype(sampler.filterMode)>(form.linear ? 1 : 0);
    sampler.flags = form.normalized ? 2 : 0;
    CUtexObject texture{};
    driver.call<CUtexObject*, const CUDA_RESOURCE_DESC*, const CUDA_TEXTURE_DESC*, const void*>(
        "cuTexObjectCreate", &texture, &resource, &sampler, nullptr);
    return texture;
}

std::vector<unsigned char> picture(const Form& form) {
    const std::size_t count = std::size_t{size} * size * form.channels;
    const unsigned bytes = form.format == u8 ? 1 : form.format == half ? 2 : 4;
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

} // namespace

int main(int argc, char** argv) try {
    if (argc < 2) {
        std::fprintf(stderr, "usage: %s LIBCUDA [FORM...]\n", argv[0]);
        return 2;
    }
    setenv("PTARMIGAN_TIER", "best", 0);
    setenv("PTARMIGAN_WORKERS", "1", 0);
    Driver driver(argv[1]);
    recordings::Address out = driver.allocate(pixels * 4);
    std::printf("%-34s Mfetches/s\n", "form");
    for (const Form& form : forms) {
        if (argc > 2 && std::find(argv + 2, argv + argc, std::string(form.name)) == argv + argc) continue;
        CUtexObject texture = make_texture(driver, form, picture(form));
        void* module = driver.load(kernel(form));
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
    const std::vector<unsigned char> texels = picture(forms[0]);
    std::memcpy(image.data(), texels.data(), texels.size());
    const double seconds = fastest([&] { turn_on_cpu(image, result); });
    std::printf("%-34s %8.1f (%g)\n", "C++, one core, linear f32", double(pixels) * fetches / seconds * 1e-6,
                double(result[pixels / 2]));
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
