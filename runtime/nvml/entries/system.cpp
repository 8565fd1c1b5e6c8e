// SPDX-License-Identifier: Apache-2.0
// Initialisation, versions, and what is asked of the machine.
#include "runtime/device/driver_version.h"
#include "runtime/nvml/library_state.h"

#include <fstream>
#include <iterator>

using namespace ptarmigan::nvml;
using ptarmigan::runtime::cuda_version;
using ptarmigan::runtime::driver_version;

PTM_NVML nvmlInit() {
    initialize();
    return success;
}

PTM_NVML nvmlInit_v2() {
    initialize();
    return success;
}

PTM_NVML nvmlInitWithFlags(unsigned) {
    initialize();
    return success;
}

PTM_NVML nvmlShutdown() {
    return shut_down() ? success : uninitialized;
}

PTM_NVML nvmlSystemGetDriverVersion(char* version, unsigned length) {
    return entry(__func__, [&] { return give_text(driver_version, version, length); });
}

PTM_NVML nvmlSystemGetNVMLVersion(char* version, unsigned length) { // needs no nvmlInit
    return report(__func__, give_text(std::to_string(cuda_version / 1000) + "." + driver_version, version, length));
}

PTM_NVML nvmlSystemGetDriverBranch(nvmlSystemDriverBranchInfo_v1_t* branch, unsigned length) {
    return entry(__func__, [&]() -> nvmlReturn_t {
        if (!branch || length == 0) return invalid_argument;
        if (branch->version != structure_version<nvmlSystemDriverBranchInfo_v1_t>(1)) return version_mismatch;
        std::string text = "r" + std::string(driver_version);
        text[text.find('.')] = '_';
        return give_text(text, branch->branch, length < sizeof branch->branch ? length : sizeof branch->branch);
    });
}

PTM_NVML nvmlSystemGetCudaDriverVersion(int* version) {
    return entry(__func__, [&] { return give(version, cuda_version); });
}

PTM_NVML nvmlSystemGetCudaDriverVersion_v2(int* version) {
    return entry(__func__, [&] { return give(version, cuda_version); });
}

PTM_NVML nvmlSystemGetProcessName(unsigned pid, char* name, unsigned length) {
    return entry(__func__, [&]() -> nvmlReturn_t {
        if (!name || length == 0) return invalid_argument;
        std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline", std::ios::binary);
        std::string words((std::istreambuf_iterator<char>(file)), {});
        if (words.empty()) return not_found;
        words.resize(words.find('\0') == std::string::npos ? words.size() : words.find('\0'));
        if (words.size() >= length) words.resize(length - 1); // the manual: trimmed, not refused
        return give_text(words, name, length);
    });
}

PTM_NVML nvmlSystemGetHicVersion(unsigned* count, void*) {
    return entry(__func__, [&] { return give(count, 0); });
}

PTM_NVML nvmlUnitGetCount(unsigned* count) {
    return entry(__func__, [&] { return give(count, 0); });
}

PTM_NVML nvmlUnitGetHandleByIndex(unsigned, nvmlUnit_t*) {
    return entry(__func__, [] { return invalid_argument; });
}

PTM_NVML nvmlGetExcludedDeviceCount(unsigned* count) {
    return entry(__func__, [&] { return give(count, 0); });
}

// Nothing is encrypted, and nobody attests anything.
PTM_NVML nvmlSystemGetConfComputeCapabilities(nvmlConfComputeSystemCaps_t* capabilities) {
    return entry(__func__, [&]() -> nvmlReturn_t {
        if (!capabilities) return invalid_argument;
        *capabilities = {};
        return success;
    });
}

PTM_NVML nvmlSystemGetConfComputeState(nvmlConfComputeSystemState_t* state) {
    return entry(__func__, [&]() -> nvmlReturn_t {
        if (!state) return invalid_argument;
        *state = {};
        return success;
    });
}

PTM_NVML nvmlSystemGetConfComputeSettings(nvmlSystemConfComputeSettings_v1_t* settings) {
    return entry(__func__, [&]() -> nvmlReturn_t {
        if (!settings) return invalid_argument;
        if (settings->version != structure_version<nvmlSystemConfComputeSettings_v1_t>(1)) return version_mismatch;
        *settings = {settings->version, 0, 0, 0, 0};
        return success;
    });
}

extern "C" __attribute__((visibility("default"))) const char* nvmlErrorString(nvmlReturn_t result) {
    switch (result) {
    case 0: return "Success";
    case 1: return "Uninitialized";
    case 2: return "Invalid Argument";
    case 3: return "Not Supported";
    case 4: return "Insufficient Permissions";
    case 5: return "Already Initialized";
    case 6: return "Not Found";
    case 7: return "Insufficient Size";
    case 8: return "Insufficient External Power";
    case 9: return "Driver Not Loaded";
    case 10: return "Timeout";
    case 11: return "Interrupt Request Issue";
    case 12: return "NVML Shared Library Not Found";
    case 13: return "Function Not Found";
    case 14: return "Corrupted infoROM";
    case 15: return "GPU is lost";
    case 16: return "GPU requires reset";
    case 17: return "GPU access blocked by the operating system";
    case 18: return "Driver/library version mismatch";
    case 19: return "In use by another client";
    case 20: return "Insufficient Memory";
    case 21: return "No data";
    case 22: return "vGPU ECC not supported";
    case 23: return "Insufficient Resources";
    case 24: return "Invalid Frequency";
    case 25: return "Argument version mismatch";
    case 26: return "Requested functionality has been deprecated";
    case 27: return "System is not in ready state";
    case 28: return "No supported GPUs were found";
    case 29: return "Resource not in correct state to perform requested operation";
    case 30: return "Reset type is not supported for given device";
    default: return "Unknown Error";
    }
}
