// SPDX-License-Identifier: Apache-2.0
// What the tensor map entries of a driver answer: codes, and the 128 bytes without trailing zeros.
//
//     tensor_maps LIBCUDA [RECORDING]    prints the answers, or compares them
#include "tests/recordings/async_copies/tensor_case.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

using namespace async_recording;

namespace {

struct alignas(64) TensorMap {
    std::uint8_t bytes[128];
};

constexpr unsigned case_count = 2400;

template <class... Parameters> int call(void* library, const char* name, Parameters... arguments) {
    auto function = reinterpret_cast<int (*)(Parameters...)>(dlsym(library, name));
    return function ? function(arguments...) : -1;
}

int encode(void* library, TensorMap& map, const MapCase& m) {
    void* at = reinterpret_cast<void*>(m.address);
    using Words = const std::uint32_t*;
    using Longs = const std::uint64_t*;
    switch (m.kind) {
    case MapCase::Kind::tiled:
        return call<TensorMap*, unsigned, unsigned, void*, Longs, Longs, Words, Words, unsigned, unsigned, unsigned, unsigned>(
            library, "cuTensorMapEncodeTiled", &map, m.type, m.rank, at, m.dim.data(), m.stride.data(), m.box.data(), m.element_stride.data(),
            m.interleave, m.swizzle, m.promotion, m.fill);
    case MapCase::Kind::im2col:
        return call<TensorMap*, unsigned, unsigned, void*, Longs, Longs, const int*, const int*, unsigned, unsigned, Words, unsigned, unsigned,
                    unsigned, unsigned>(library, "cuTensorMapEncodeIm2col", &map, m.type, m.rank, at, m.dim.data(), m.stride.data(),
                                        m.lower.data(), m.upper.data(), m.channels, m.pixels, m.element_stride.data(), m.interleave,
                                        m.swizzle, m.promotion, m.fill);
    default:
        return call<TensorMap*, unsigned, unsigned, void*, Longs, Longs, int, int, unsigned, unsigned, Words, unsigned, unsigned, unsigned,
                    unsigned, unsigned>(library, "cuTensorMapEncodeIm2colWide", &map, m.type, m.rank, at, m.dim.data(), m.stride.data(),
                                        m.lower[0], m.upper[0], m.channels, m.pixels, m.element_stride.data(), m.interleave, m.mode,
                                        m.swizzle, m.promotion, m.fill);
    }
}

std::string hex(const TensorMap& map) {
    unsigned length = 128;
    while (length > 0 && map.bytes[length - 1] == 0) --length;
    std::string text;
    char digits[3];
    for (unsigned i = 0; i < length; ++i) {
        std::snprintf(digits, sizeof digits, "%02x", map.bytes[i]);
        text += digits;
    }
    return text.empty() ? "0" : text;
}

std::string answer(void* library, unsigned index) {
    TensorMap map{};
    const int code = encode(library, map, map_case(index));
    return std::to_string(index) + " " + std::to_string(code) + " " + (code == 0 ? hex(map) : "-");
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    void* library = dlopen(argv[1], RTLD_NOW);
    if (!library) return std::fprintf(stderr, "%s\n", dlerror()), 2;
    int device = 0;
    void* context = nullptr;
    call<unsigned>(library, "cuInit", 0u);
    call<int*, int>(library, "cuDeviceGet", &device, 0);
    call<void**, int>(library, "cuDevicePrimaryCtxRetain", &context, device);
    call<void*>(library, "cuCtxSetCurrent", context);
    std::ifstream recording;
    if (argc > 2) recording.open(argv[2]);
    unsigned failed = 0;
    for (unsigned i = 0; i < case_count; ++i) {
        const std::string now = answer(library, i);
        if (argc == 2) {
            std::puts(now.c_str());
            continue;
        }
        std::string line;
        std::getline(recording, line);
        if (line != now && ++failed <= 20) std::printf("recorded %s\n     now %s\n", line.c_str(), now.c_str());
    }
    if (argc > 2) std::printf("%u of %u differ\n", failed, case_count);
    return failed != 0;
}
