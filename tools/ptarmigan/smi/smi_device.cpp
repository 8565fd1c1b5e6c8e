// SPDX-License-Identifier: Apache-2.0
#include "tools/ptarmigan/smi/smi_device.h"

#include "runtime/nvml/nvml_calls.h"

#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <stdexcept>

namespace ptarmigan::tool::smi {
namespace {

void check(nvmlReturn_t result) {
    if (result != 0) throw std::runtime_error(nvmlErrorString(result));
}

std::vector<Process> processes_of(nvmlDevice_t device) {
    std::vector<nvmlProcessInfo_v2_t> list(64);
    auto count = static_cast<unsigned>(list.size());
    constexpr int insufficient_size = 7;
    while (nvmlDeviceGetComputeRunningProcesses_v3(device, &count, list.data()) == insufficient_size) {
        list.resize(2 * std::size_t{count}); // some more may begin meanwhile
        count = static_cast<unsigned>(list.size());
    }
    std::vector<Process> processes;
    for (unsigned i = 0; i < count; ++i) {
        char name[512] = "";
        if (nvmlSystemGetProcessName(list[i].pid, name, sizeof name) != 0) continue; // it has just ended
        processes.push_back({list[i].pid, name, list[i].usedGpuMemory});
    }
    return processes;
}

DeviceState read_device(nvmlDevice_t device) {
    DeviceState state;
    char text[96];
    check(nvmlDeviceGetIndex(device, &state.index));
    check(nvmlDeviceGetMinorNumber(device, &state.minor));
    check(nvmlDeviceGetName(device, text, sizeof text));
    state.name = text;
    check(nvmlDeviceGetUUID(device, text, sizeof text));
    state.uuid = text;
    nvmlPciInfo_t pci{};
    check(nvmlDeviceGetPciInfo_v3(device, &pci));
    state.bus_id = pci.busId;
    state.pci_domain = pci.domain;
    state.pci_bus = pci.bus;
    state.pci_device = pci.device;
    state.pci_device_id = pci.pciDeviceId;
    state.pci_subsystem_id = pci.pciSubSystemId;
    nvmlMemory_v2_t memory{};
    memory.version = nvml::structure_version<nvmlMemory_v2_t>(2);
    check(nvmlDeviceGetMemoryInfo_v2(device, &memory));
    state.memory_total = memory.total;
    state.memory_reserved = memory.reserved;
    state.memory_used = memory.used;
    state.memory_free = memory.free;
    nvmlUtilization_t utilization{};
    check(nvmlDeviceGetUtilizationRates(device, &utilization));
    state.busy = utilization.gpu;
    state.memory_busy = utilization.memory;
    check(nvmlDeviceGetCudaComputeCapability(device, &state.cc_major, &state.cc_minor));
    check(nvmlDeviceGetArchitecture(device, &state.architecture));
    check(nvmlDeviceGetBrand(device, &state.brand));
    constexpr int multiprocessors = 1, memory_clock = 2; // NVML_CLOCK_SM, NVML_CLOCK_MEM
    check(nvmlDeviceGetMaxClockInfo(device, multiprocessors, &state.max_clock));
    check(nvmlDeviceGetMaxClockInfo(device, memory_clock, &state.max_memory_clock));
    state.processes = processes_of(device);
    return state;
}

bool find(const std::string& name, nvmlDevice_t& device) {
    if (!name.empty() && name.find_first_not_of("0123456789") == std::string::npos && name.size() < 4)
        return nvmlDeviceGetHandleByIndex_v2(static_cast<unsigned>(std::stoul(name)), &device) == 0;
    return nvmlDeviceGetHandleByUUID(name.c_str(), &device) == 0 ||
           nvmlDeviceGetHandleByPciBusId_v2(name.c_str(), &device) == 0;
}

} // namespace

SystemState read_system() {
    check(nvmlInit_v2());
    SystemState system;
    char text[96];
    check(nvmlSystemGetDriverVersion(text, sizeof text));
    system.driver_version = text;
    check(nvmlSystemGetNVMLVersion(text, sizeof text));
    system.nvml_version = text;
    int version = 0;
    check(nvmlSystemGetCudaDriverVersion_v2(&version));
    system.cuda_version = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
    check(nvmlDeviceGetCount_v2(&system.device_count));
    for (unsigned i = 0; i < system.device_count; ++i) {
        nvmlDevice_t device = nullptr;
        check(nvmlDeviceGetHandleByIndex_v2(i, &device));
        system.devices.push_back(read_device(device));
    }
    return system;
}

void select_devices(SystemState& system, const std::string& list) {
    std::vector<DeviceState> chosen;
    for (std::size_t begin = 0; begin <= list.size();) {
        const std::size_t end = std::min(list.find(',', begin), list.size());
        nvmlDevice_t device = nullptr;
        unsigned index = 0;
        if (find(list.substr(begin, end - begin), device) && nvmlDeviceGetIndex(device, &index) == 0)
            chosen.push_back(system.devices.at(index));
        begin = end + 1;
    }
    system.devices = std::move(chosen);
}

std::uint64_t mebibytes(std::uint64_t bytes) {
    return bytes >> 20;
}

std::string long_time() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    localtime_r(&now, &parts);
    char text[64];
    std::strftime(text, sizeof text, "%a %b %e %H:%M:%S %Y", &parts);
    return text;
}

std::string short_time() {
    const auto now = std::chrono::system_clock::now();
    const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
    std::tm parts{};
    localtime_r(&seconds, &parts);
    char text[64];
    std::strftime(text, sizeof text, "%Y/%m/%d %H:%M:%S", &parts);
    const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
    return fmt::format("{}.{:03}", text, since);
}

} // namespace ptarmigan::tool::smi
