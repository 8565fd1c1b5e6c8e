// SPDX-License-Identifier: Apache-2.0
#include "bench/compile_time/driver_load.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string_view>

namespace ptarmigan::bench {
namespace {

template <class... Arguments> int call(void* library, const char* name, Arguments... arguments) {
    void* entry = dlsym(library, name);
    return entry == nullptr ? -1 : reinterpret_cast<int (*)(Arguments...)>(entry)(arguments...);
}

constexpr std::string_view loader_option = "--load-with-driver";

/// False if the driver refuses something.
bool load(const std::string& path, const std::string& text, const std::string& last_kernel, DriverLoad& result) {
    void* library = dlopen(path.c_str(), RTLD_NOW);
    int device = 0;
    void *context = nullptr, *module = nullptr, *function = nullptr;
    if (library == nullptr || call(library, "cuInit", 0u) != 0 || call(library, "cuDeviceGet", &device, 0) != 0 ||
        call(library, "cuDevicePrimaryCtxRetain", &context, device) != 0 ||
        call(library, "cuCtxSetCurrent", context) != 0)
        return false;
    const double before = resident_megabytes();
    const auto start = std::chrono::steady_clock::now();
    const int loaded = call(library, "cuModuleLoadData", &module, static_cast<const void*>(text.c_str()));
    const int found =
        loaded != 0 ? loaded : call(library, "cuModuleGetFunction", &function, module, last_kernel.c_str());
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    result.megabytes = resident_megabytes() - before;
    return found == 0;
}

} // namespace

double resident_megabytes() {
    std::ifstream file("/proc/self/statm");
    double total = 0, resident = 0;
    file >> total >> resident;
    return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

std::optional<int> run_as_loader(int count, char** arguments) {
    if (count != 6 || arguments[1] != loader_option) return std::nullopt;
    std::ifstream file(arguments[3], std::ios::binary | std::ios::ate);
    std::string text(static_cast<std::size_t>(std::max<std::streamoff>(file.tellg(), 0)), '\0');
    file.seekg(0);
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    DriverLoad result;
    const bool good = file && load(arguments[2], text, arguments[4], result);
    const bool told = write(std::atoi(arguments[5]), &result, sizeof result) == sizeof result;
    return good && told ? 0 : 1;
}

DriverLoad load_with_driver(const std::string& library, const std::string& file, const std::string& last_kernel,
                            const std::string& cache, bool eager) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    const pid_t child = fork();
    if (child == 0) {
        setenv("PTARMIGAN_CACHE_DIR", cache.c_str(), 1);
        setenv("CUDA_MODULE_LOADING", eager ? "EAGER" : "LAZY", 1);
        execl("/proc/self/exe", "bench_compile_time", std::string(loader_option).c_str(), library.c_str(), file.c_str(),
              last_kernel.c_str(), std::to_string(ends[1]).c_str(), nullptr);
        _exit(1);
    }
    DriverLoad result;
    close(ends[1]);
    const bool heard = read(ends[0], &result, sizeof result) == sizeof result;
    int status = 1;
    waitpid(child, &status, 0);
    close(ends[0]);
    if (!heard || status != 0) throw std::runtime_error(library + " can't load the large module");
    return result;
}

} // namespace ptarmigan::bench
