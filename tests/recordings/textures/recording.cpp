// SPDX-License-Identifier: Apache-2.0
#include "tests/recordings/textures/recording.h"

#include <dlfcn.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace texture_recording {

Driver::Driver(const char* path) : library_(dlopen(path, RTLD_NOW)) {
    if (!library_) throw std::runtime_error(dlerror());
    call("cuInit", 0u);
    CUdevice device = 0;
    call("cuDeviceGet", &device, 0);
    CUcontext context = nullptr;
    call("cuDevicePrimaryCtxRetain", &context, device);
    call("cuCtxSetCurrent", context);
}

void* Driver::entry(const char* name) {
    void* function = dlsym(library_, name);
    if (!function) throw std::runtime_error(std::string(name) + " is missing");
    return function;
}

CUdeviceptr Driver::upload(const void* data, std::size_t size) {
    CUdeviceptr pointer = 0;
    call("cuMemAlloc_v2", &pointer, size);
    call("cuMemcpyHtoD_v2", pointer, data, size);
    return pointer;
}

void Driver::launch(CUfunction function, unsigned blocks, unsigned threads, void** parameters) {
    call<CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**, void**>(
        "cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, 0, nullptr, parameters, nullptr);
}

CUmodule Driver::load(const std::string& text) {
    CUmodule module = nullptr;
    call<CUmodule*, const void*>("cuModuleLoadData", &module, text.c_str());
    return module;
}

Recording::Recording(const char* path, const std::string& option, const char* raw) : option_(option) {
    std::ifstream file(path);
    for (std::string hash, name; file >> hash >> name;) lines_[name] = hash;
    if (const char* skip = std::getenv("RECORDING_SKIP")) skip_ = unsigned(std::atoi(skip));
    if (option == "--raw") raw_.open(raw, skip_ ? std::ios::binary | std::ios::app : std::ios::binary);
    if (option == "--against") against_.open(raw, std::ios::binary);
}

void Recording::take(const std::string& name, const std::function<std::vector<std::uint32_t>()>& run,
                     const std::function<std::string(std::size_t)>& explain) {
    if (skip_ && skip_--) return;
    std::vector<std::uint32_t> results;
    std::string hash(16, '0');
    bool lost = false;
    try {
        results = run();
        std::snprintf(hash.data(), hash.size() + 1, "%016llx", static_cast<unsigned long long>(seed_of(
            {reinterpret_cast<const char*>(results.data()), results.size() * 4})));
    } catch (const DriverError& error) {
        hash = "e" + std::to_string(error.code);
        lost = error.code >= 700 && error.code < 800; // sticks to the context
    }
    const auto count = std::uint32_t(results.size());
    if (raw_.is_open())
        raw_.write(reinterpret_cast<const char*>(&count), 4).write(reinterpret_cast<const char*>(results.data()), count * 4);
    if (against_.is_open()) return show(name, results, explain);
    compare(name, hash);
    if (lost) {
        raw_.flush();
        std::fflush(stdout);
        std::_Exit(3);
    }
}

void Recording::compare(const std::string& name, const std::string& hash) {
    const std::string recorded = lines_[name];
    const bool differs = recorded.starts_with("~");
    if (!option_.empty()) {
        std::printf("%s%s %s\n", differs ? "~" : "", hash.c_str(), name.c_str());
    } else if ((recorded == (differs ? "~" : "") + hash) != differs) {
        ++(differs ? known_ : passed_);
    } else {
        ++failed_;
        std::printf("%s: %s\n", name.c_str(), differs ? "agrees although it is marked as a known difference"
                                                      : ("differs from the recording: " + hash).c_str());
    }
}

void Recording::show(const std::string& name, const std::vector<std::uint32_t>& ours,
                     const std::function<std::string(std::size_t)>& explain) {
    std::uint32_t count = 0;
    against_.read(reinterpret_cast<char*>(&count), 4);
    std::vector<std::uint32_t> theirs(against_ ? count : 0);
    against_.read(reinterpret_cast<char*>(theirs.data()), std::streamsize(theirs.size() * 4));
    if (ours == theirs) {
        ++passed_;
        return;
    }
    ++failed_;
    unsigned different = 0;
    for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
        if (ours[i] == theirs[i] || ++different > 4) continue;
        std::printf("  word %zu: %08x (%.9g), recorded %08x (%.9g); %s\n", i, ours[i], double(std::bit_cast<float>(ours[i])),
                    theirs[i], double(std::bit_cast<float>(theirs[i])), explain(i).c_str());
    }
    std::printf("%s: %u of %zu words differ (recorded %zu)\n", name.c_str(), different, ours.size(), theirs.size());
}

int Recording::finish() const {
    if (option_.empty() || option_ == "--against")
        std::printf("%u cases agree, %u are known to differ, %u failed\n", passed_, known_, failed_);
    return failed_ != 0;
}

int record_or_compare(int argc, char** argv, const std::function<void(Driver&, Recording&)>& run) {
    const std::string option = argc > 3 ? argv[3] : "";
    if (argc < 3 || argc > 5 || (argc == 4 && option != "--record")) {
        std::fprintf(stderr, "usage: %s LIBCUDA RECORDING [--record | --raw FILE | --against FILE]\n", argv[0]);
        return 2;
    }
    try {
        Driver driver(argv[1]);
        Recording recording(argv[2], option, argc > 4 ? argv[4] : nullptr);
        run(driver, recording);
        return recording.finish();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}

} // namespace texture_recording
