// SPDX-License-Identifier: Apache-2.0
// `ptarmigan info`: the device as programs will see it.
#include "runtime/device/device.h"
#include "runtime/device/device_profile.h"
#include "runtime/device/driver_version.h"
#include "runtime/module/disk_cache.h"
#include "runtime/module/kernel_cache.h"
#include "runtime/module/process_target.h"
#include "tools/ptarmigan/commands.h"
#include "translator/llvm/detect_cpu.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <string>

namespace ptarmigan::tool {
namespace {

/// The folder of compiled kernels, or why there is none.
std::string describe_cache(const runtime::CacheSettings& cache) {
    if (!cache.enabled) return "off";
    if (cache.directory.empty()) return "none: HOME is not set";
    const std::string problem = runtime::DiskCache(cache.directory, cache.size_limit).problem();
    return cache.directory + (problem.empty() ? "" : " (" + problem + ")");
}

/// A folder of ready-made kernels, or why it is not used.
std::string describe_system_cache(const std::string& folder) {
    const std::string problem = runtime::DiskCache(folder, runtime::DiskCache::ReadOnly()).problem();
    return folder + (problem.empty() ? " (only read)" : " (" + problem + ")");
}

/// Which GPU the device claims to be, and how much of that was looked at on one.
std::string describe_profile() {
    const runtime::DeviceProfile* profile = runtime::chosen_profile();
    if (!profile) return "none: the host, described as an H200 (PTARMIGAN_DEVICE)";
    const std::string source = profile->source;
    return std::string(profile->id) + (profile->recorded ? ", " + source : ", not recorded from hardware: " + source);
}

/// Where it is not the claimed GPU's.
std::string describe_memory(const runtime::Device& device) {
    const runtime::DeviceProfile* profile = runtime::chosen_profile();
    if (!profile || device.total_memory() >= profile->memory - (2 << 20)) return "";
    return " (half of the host's; the GPU has " + std::to_string(profile->memory >> 20) + ", PTARMIGAN_MEMORY)";
}

int info(bool attributes) {
    static_cast<void>(runtime::Device::initialize()); // so that ordinals are those of programs
    runtime::Device& device = runtime::Device::get();
    auto target = runtime::process_target();
    auto cache = runtime::CacheSettings::from_environment();
    unsigned cc = device.compute_capability();
    std::printf("device               %s\n", device.name().c_str());
    std::printf("profile              %s\n", describe_profile().c_str());
    std::printf("devices              %d (PTARMIGAN_DEVICES), of which programs see %d%s\n",
                runtime::Device::number_of_devices(), runtime::Device::count(),
                runtime::Device::count() ? "" : " (CUDA_VISIBLE_DEVICES)");
    std::printf("compute capability   %u.%u\n", cc / 10, cc % 10);
    std::printf("multiprocessors      %u (PTARMIGAN_SMS)\n", device.multiprocessors());
    std::printf("workers              %u host threads that run CTAs\n", device.workers());
    std::printf("memory               %zu MiB each%s\n", device.total_memory() >> 20, describe_memory(device).c_str());
    std::printf("driver version       %d.%d (%s)\n", runtime::cuda_version / 1000, runtime::cuda_version % 1000 / 10,
                runtime::driver_version);
    for (int i = 0; i < runtime::Device::count(); ++i)
        std::printf("PCI bus id of %-6d %s\n", i, runtime::Device::get(i).pci_bus_id().c_str());
    const std::string vectors = translator::describe_vectors(target);
    std::printf("compiles for         %s%s\n", target.cpu.c_str(),
                vectors.empty() ? "" : (" (" + vectors + ")").c_str());
    std::printf("kernel cache         %s\n", describe_cache(cache).c_str());
    if (cache.enabled)
        for (const std::string& folder : cache.system_directories)
            std::printf("system cache         %s\n", describe_system_cache(folder).c_str());
    std::printf("translator           %s\n",
                cache.translator_library.empty() ? "not found" : cache.translator_library.c_str());
    if (attributes) {
        std::printf("attributes\n");
        int id = 0;
        const char* name = nullptr;
        for (std::size_t i = 0; runtime::device_attribute_row(i, id, name); ++i)
            std::printf("  %3d  %-52s %d\n", id, name, device.attribute(id).value_or(0));
    }
    return exit_success;
}

} // namespace

void add_info_command(CLI::App& app, int& exit_code) {
    auto attributes = std::make_shared<bool>(false);
    auto* command = app.add_subcommand("info", "Describe the device as programs will see it");
    command->add_flag("--attributes", *attributes, "all device attributes too");
    command->callback([attributes, &exit_code] { exit_code = info(*attributes); });
}

} // namespace ptarmigan::tool
