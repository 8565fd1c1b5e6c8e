// SPDX-License-Identifier: Apache-2.0
// What a graph's launch costs: 1,000 empty kernels launched one by one, as a chain of nodes, as 1,000 nodes side by
// side, and as 10 chains of 100; each launched and waited for.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <vector>

namespace {

const char* const text = ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry empty() { ret; }\n";
constexpr int nodes = 1000;

void* library = nullptr;

/// The driver's entry `name`; what it returns.
template <class... Arguments> int call(const char* name, Arguments... arguments) {
    void* entry = dlsym(library, name);
    return entry ? reinterpret_cast<int (*)(Arguments...)>(entry)(arguments...) : -1;
}

/// CUDA_KERNEL_NODE_PARAMS.
struct KernelNode {
    void* function;
    unsigned grid[3], block[3], shared;
    void **parameters, **extra;
    void *kernel, *context;
};

/// An instance of a graph of `chains` chains of empty kernels of one thread each; null if a call fails.
void* make_graph(void* function, int chains) {
    void *graph = nullptr, *exec = nullptr;
    if (call("cuGraphCreate", &graph, 0u) != 0) return nullptr;
    const KernelNode node{function, {1, 1, 1}, {1, 1, 1}, 0, nullptr, nullptr, nullptr, nullptr};
    for (int chain = 0; chain < chains; ++chain) {
        void* last = nullptr;
        for (int i = 0; i < nodes / chains; ++i) {
            void* made = nullptr;
            if (call("cuGraphAddKernelNode_v2", &made, graph, &last, std::size_t{last ? 1u : 0u}, &node) != 0)
                return nullptr;
            last = made;
        }
    }
    return call("cuGraphInstantiateWithFlags", &exec, graph, 0ull) == 0 ? exec : nullptr;
}

void print(const char* name, const std::function<bool()>& launch) {
    std::vector<double> times;
    for (int round = 0; round < 300; ++round) {
        const auto start = std::chrono::steady_clock::now();
        if (!launch() || call("cuCtxSynchronize") != 0) return;
        const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - start;
        times.push_back(elapsed.count());
    }
    std::sort(times.begin(), times.end());
    std::printf("| %-28s | %8.1f | %8.1f |\n", name, times.front(), times[times.size() / 2]);
}

} // namespace

int main(int argc, char** argv) {
    library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : nullptr;
    void *context = nullptr, *module = nullptr, *function = nullptr, *stream = nullptr;
    if (!library || call("cuInit", 0u) != 0 || call("cuDevicePrimaryCtxRetain", &context, 0) != 0 ||
        call("cuCtxSetCurrent", context) != 0 ||
        call("cuModuleLoadData", &module, static_cast<const void*>(text)) != 0 ||
        call("cuModuleGetFunction", &function, module, "empty") != 0 || call("cuStreamCreate", &stream, 1u) != 0) {
        std::fprintf(stderr, "usage: %s LIBCUDA\n", argv[0]);
        return 2;
    }
    std::printf("| 1,000 empty kernels, 1 thread | min, us  | median   |\n|---|---|---|\n");
    print("single launches", [&] {
        for (int i = 0; i < nodes; ++i)
            if (call("cuLaunchKernel", function, 1u, 1u, 1u, 1u, 1u, 1u, 0u, stream, static_cast<void**>(nullptr),
                     static_cast<void**>(nullptr)) != 0)
                return false;
        return true;
    });
    struct Form {
        const char* name;
        int chains;
    };
    for (const Form& form :
         {Form{"a graph, one chain", 1}, Form{"a graph, 10 chains", 10}, Form{"a graph, no edges", nodes}}) {
        void* exec = make_graph(function, form.chains);
        if (!exec) return 1;
        print(form.name, [&] { return call("cuGraphLaunch", exec, stream) == 0; });
    }
    return 0;
}
