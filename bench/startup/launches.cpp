// SPDX-License-Identifier: Apache-2.0
// What a launch costs: an empty kernel, launched and waited for, and launched many times before one wait.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

namespace {

const char* const text = ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry empty() { ret; }\n";

class Driver {
public:
    explicit Driver(const char* path) : library_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {}

    bool prepare() {
        if (!library_) return false;
        launch_ = symbol<Launch>("cuLaunchKernel");
        synchronize_ = symbol<int()>("cuCtxSynchronize");
        const auto initialize = symbol<int(unsigned)>("cuInit");
        const auto retain = symbol<int(void**, int)>("cuDevicePrimaryCtxRetain");
        const auto make_current = symbol<int(void*)>("cuCtxSetCurrent");
        const auto load = symbol<int(void**, const void*)>("cuModuleLoadData");
        const auto find = symbol<int(void**, void*, const char*)>("cuModuleGetFunction");
        if (!launch_ || !synchronize_ || !initialize || !retain || !make_current || !load || !find) return false;
        void *context = nullptr, *module = nullptr;
        return initialize(0) == 0 && retain(&context, 0) == 0 && make_current(context) == 0 &&
               load(&module, text) == 0 && find(&function_, module, "empty") == 0;
    }

    /// Microseconds per launch of each of `rounds` batches of `batch` launches and one wait; empty if a call fails.
    std::vector<double> time(unsigned ctas, int batch, int rounds) {
        std::vector<double> times;
        for (int round = 0; round < rounds; ++round) {
            const auto start = std::chrono::steady_clock::now();
            for (int i = 0; i < batch; ++i)
                if (launch_(function_, ctas, 1, 1, 256, 1, 1, 0, nullptr, nullptr, nullptr) != 0) return {};
            if (synchronize_() != 0) return {};
            const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - start;
            times.push_back(elapsed.count() / batch);
        }
        std::sort(times.begin(), times.end());
        return times;
    }

private:
    using Launch = int(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                       void**);
    template <typename Signature> Signature* symbol(const char* name) {
        return reinterpret_cast<Signature*>(dlsym(library_, name));
    }

    void* library_;
    void* function_ = nullptr;
    Launch* launch_ = nullptr;
    int (*synchronize_)() = nullptr;
};

} // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: %s LIBCUDA\n", argv[0]);
        return 2;
    }
    Driver driver(argv[1]);
    if (!driver.prepare()) {
        std::fprintf(stderr, "%s: can't load a kernel with it\n", argv[1]);
        return 1;
    }
    std::printf("| empty kernel, 256 threads    | min, us  | median   |\n|---|---|---|\n");
    for (const int batch : {1, 100}) {
        for (const unsigned ctas : {1u, 64u, 4096u}) {
            const std::vector<double> times = driver.time(ctas, batch, batch == 1 ? 2000 : 100);
            if (times.empty()) return 1;
            std::printf("| %4u CTAs, %-18s | %8.2f | %8.2f |\n", ctas,
                        batch == 1 ? "launch and wait" : "100 launches, wait", times.front(), times[times.size() / 2]);
        }
    }
    return 0;
}
