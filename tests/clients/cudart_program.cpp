// SPDX-License-Identifier: Apache-2.0
// What a program of nvcc's does, with a libcudart of any version: `cudart_program LIBCUDART`. Its code is registered as
// nvcc's start-up code does it; libcuda.so.1 is what the loader finds.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <vector>

namespace {

void* library = nullptr;

template <class Result = int, class... Arguments> Result call(const char* name, Arguments... arguments) {
    void* entry = dlsym(library, name);
    if (!entry) {
        std::printf("no %s\n", name);
        std::exit(1);
    }
    return reinterpret_cast<Result (*)(Arguments...)>(entry)(arguments...);
}

template <class... Arguments> void must(const char* name, Arguments... arguments) {
    if (const int result = call(name, arguments...)) {
        std::printf("%s: %d\n", name, result);
        std::exit(1);
    }
}

const char text[] = R"(.version 7.0
.target sm_50
.address_size 64
.visible .entry twice(.param .u64 data) {
    .reg .b64 %a, %o; .reg .b32 %t, %v;
    ld.param.u64 %a, [data];
    mov.u32 %t, %tid.x;
    mul.wide.u32 %o, %t, 4;
    add.u64 %a, %a, %o;
    ld.global.u32 %v, [%a];
    add.u32 %v, %v, %v;
    st.global.u32 [%a], %v;
    ret;
}
)";

/// A container with one PTX entry (runtime/module/fatbin_writer.cpp has the layout).
std::vector<std::uint64_t> container() {
    const std::size_t stored = (sizeof text + 7) / 8 * 8;
    std::vector<std::uint64_t> words((16 + 64 + stored) / 8);
    auto* bytes = reinterpret_cast<unsigned char*>(words.data());
    const auto put = [&](std::size_t at, auto value) { std::memcpy(bytes + at, &value, sizeof value); };
    put(0, std::uint32_t{0xBA55ED50}), put(4, std::uint16_t{1}), put(6, std::uint16_t{16}), put(8, 64 + stored);
    put(16, std::uint16_t{1}), put(18, std::uint16_t{0x0101}), put(20, std::uint32_t{64}), put(24, stored);
    put(16 + 0x1a, std::uint16_t{7}), put(16 + 0x1c, std::uint32_t{50}), put(16 + 0x28, std::uint64_t{0x11});
    std::memcpy(bytes + 80, text, sizeof text);
    return words;
}

struct Wrapper {
    std::uint32_t magic, version;
    const void* data;
    void* unused;
};

struct Dimensions {
    unsigned x, y, z;
};

void stub() {} // its address stands for the kernel

} // namespace

int main(int count, char** words) {
    library = count > 1 ? dlopen(words[1], RTLD_NOW) : nullptr;
    if (!library) return std::printf("%s\n", count > 1 ? dlerror() : "cudart_program LIBCUDART"), 2;
    const std::vector<std::uint64_t> code = container();
    static Wrapper wrapper{0x466243b1, 1, code.data(), nullptr};
    void** fat = call<void**>("__cudaRegisterFatBinary", static_cast<void*>(&wrapper));
    call<void>("__cudaRegisterFunction", fat, reinterpret_cast<const void*>(&stub), const_cast<char*>("twice"), "twice",
               -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    call<void>("__cudaRegisterFatBinaryEnd", fat);
    int runtime = 0, driver = 0, devices = 0;
    must("cudaRuntimeGetVersion", &runtime);
    must("cudaDriverGetVersion", &driver);
    must("cudaGetDeviceCount", &devices);
    unsigned data[32], back[32];
    for (unsigned i = 0; i < 32; ++i) data[i] = i * i;
    void* memory = nullptr;
    must("cudaMalloc", &memory, sizeof data);
    must("cudaMemcpy", memory, static_cast<const void*>(data), sizeof data, 1);
    void* parameters[] = {&memory};
    must("cudaLaunchKernel", reinterpret_cast<const void*>(&stub), Dimensions{1, 1, 1}, Dimensions{32, 1, 1},
         &parameters[0], std::size_t{0}, static_cast<void*>(nullptr));
    void* stream = nullptr;
    must("cudaStreamCreate", &stream);
    must("cudaStreamSynchronize", stream);
    must("cudaDeviceSynchronize");
    must("cudaMemcpy", static_cast<void*>(back), static_cast<const void*>(memory), sizeof data, 2);
    must("cudaFree", memory);
    int wrong = 0;
    for (unsigned i = 0; i < 32; ++i) wrong += back[i] != 2 * data[i];
    std::printf("%s runtime %d driver %d devices %d wrong %d\n", wrong || devices != 1 ? "FAIL" : "PASS", runtime, driver,
                devices, wrong);
    call<void>("__cudaUnregisterFatBinary", fat);
    return wrong || devices != 1;
}
