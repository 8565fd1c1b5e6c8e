// SPDX-License-Identifier: Apache-2.0
// What an NVIDIA Management Library answers: every query with zeros, with a device and room for answers, and the usual ones with the
// arguments that programs get right and wrong. Answers: nvml_answers_h100.txt. Entries that change a GPU's settings are not called.
#include "tests/driver_api/answers/answers.h"

#include "runtime/nvml/nvml_types.h"

#include <csetjmp>
#include <csignal>
#include <cstring>
#include <set>
#include <string_view>
#include <unistd.h>
#include <vector>

using answers::call;
using answers::library;
using answers::must;
using ptarmigan::nvml::structure_version;

namespace {

/// Questions with these words are recorded and not compared.
constexpr struct {
    std::string_view words, why;
} not_compared[] = {
    {"field ", "counters of hardware"},
    {"v1 handle", "NVIDIA's first version has handles of its own"},
    {"driver branch", "empty on that machine"},
    {"driver version's form", "a branch, no release"},
    {"own name begins", "how the test was called"},
    {"ancestor with itself", "refused in that virtual machine"},
    {"on the same board as itself", "success, and nothing is written"},
    {"excluded devices", "success, and nothing is written"},
    {"pci ext", "classes of the bus, which nvidia-smi shows otherwise"},
    {"BAR1", "there is none"},
    {"GetModuleId", "a board's"},
    {"GetDisplayMode", "deprecated"},
    {"GetVirtualizationMode", "that machine passes its GPU through"},
    {"EccMode", "the memory is the host's"},
    {"PowerSource", "no sensors"},
    {"BusType", "no bus"},
    {"GspFirmwareMode", "no firmware"},
    {"AdaptiveClock", "no clocks"},
    {"ComputeInstanceId", "2 for devices without instances, 3 here"},
    {"GpuInstanceId", "2 for devices without instances, 3 here"},
    {"PerformanceState", "no sensors"},
    {"PcieLink", "no bus"},
    {"PowerManagementLimit", "no sensors"},
    {"EncoderUtilization", "no video engines"},
    {"MaxClockInfo 3", "no video engines"},
    {"clock ", "no sensors"},
    {"temperature of", "no sensors"},
    {"NvLinkCapability 18", "2 for links beyond the last, 3 here"},
    {"NvLinkCapability 99", "2 for links beyond the last, 3 here"},
    {"second: ", "needs two devices"},
    {"Processes nowhere", "others may use the device meanwhile"},
    {"Processes_v2 nowhere", "others may use the device meanwhile"},
    {"Processes_v3 nowhere", "others may use the device meanwhile"},
    {"without room", "others may use the device meanwhile"},
    {"in room for 1", "others may use the device meanwhile"},
    {"of processes", "others may use the device meanwhile"},
    {"v1's use is", "others may use the device meanwhile"},
};

/// The comparison, without what is not compared.
class Questions {
public:
    Questions(int count, char** words) : answers_(count, words), compares_(count == 3) {
        if (!compares_) return;
        for (const auto& row : not_compared) answers_.forget(std::string(row.words));
        std::ifstream file(words[2]);
        for (std::string line; std::getline(file, line);) recorded_.insert(line.substr(0, line.find('\t')));
    }
    template <class Answer> void give(const std::string& question, const Answer& answer) {
        if (compares_)
            for (const auto& row : not_compared)
                if (question.find(row.words) != std::string::npos) return;
        answers_.give(question, answer);
    }
    /// False where NVIDIA's library crashed, and for entries without a body here: any status will do.
    bool is_compared(const std::string& question) const { return !compares_ || recorded_.contains(question); }
    int finish() const { return answers_.finish(); }

private:
    answers::Answers answers_;
    bool compares_;
    std::set<std::string> recorded_;
};

struct Row {
    const char* name;
    bool implemented;
    bool device_first;
};

constexpr Row rows[] = {
#define device true
#define other false
#define IMPLEMENTED(name) {#name, true, std::string_view(#name).starts_with("nvmlDeviceGet") && !std::string_view(#name).starts_with("nvmlDeviceGetHandle") && !std::string_view(#name).starts_with("nvmlDeviceGetCount")},
#define ABSENT(name, first, why) {#name, false, first},
#define REFUSED(name, first, why) {#name, false, first},
#include "runtime/nvml/nvml_api.def"
#undef device
#undef other
};

/// Neither changes anything nor waits.
bool only_asks(const char* name) {
    if (std::strstr(name, "nvmlInit") || std::strstr(name, "Shutdown") || std::strstr(name, "ErrorString")) return false;
    for (const char* part : {"Set", "Clear", "Reset", "Remove", "Modify", "Update", "Activate", "Freeze", "Validate", "Discover", "Register", "Write", "PRM", "Create", "Destroy", "Wait", "Free", "Alloc", "Unload", "Gpm", "Attestation", "Certificate", "CPER"})
        if (std::strstr(name, part) && !std::strstr(name, "GpuSet")) return false;
    return true;
}

sigjmp_buf back;
void crashed(int) {
    siglongjmp(back, 1);
}

using Call = int (*)(std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t);

/// The status, or "crash".
std::string answer(const char* name, std::uint64_t first) {
    void* const entry = dlsym(library, name);
    if (!entry) return "none";
    if (sigsetjmp(back, 1)) return "crash";
    return std::to_string(reinterpret_cast<Call>(entry)(first, 0, 0, 0, 0, 0, 0, 0));
}

/// The entries, or those that take a device first, with zeros behind `first`. NVIDIA's library crashes at many of them.
void ask_all(Questions& answers, const std::string& state, std::uint64_t first, bool device_only) {
    for (const Row& row : rows)
        if (only_asks(row.name) && (row.device_first || !device_only) && answers.is_compared(state + " " + row.name))
            answers.give(state + " " + row.name, answer(row.name, first));
}

std::string hidden(const std::string& text) {
    std::string shape;
    for (char c : text) {
        const char kind = std::isdigit(static_cast<unsigned char>(c)) ? '#' : c;
        if (kind != '#' || shape.empty() || shape.back() != '#') shape += kind;
    }
    return shape;
}

std::string hex(const void* bytes, std::size_t size) {
    std::string text;
    char pair[3];
    for (std::size_t i = 0; i < size; ++i) {
        std::snprintf(pair, sizeof pair, "%02x", static_cast<const unsigned char*>(bytes)[i]);
        text += pair;
    }
    return text;
}

/// Which bytes of a structure are written: runs of offsets.
template <class F> std::string written(std::size_t size, F&& ask) {
    std::vector<unsigned char> once(size, 0x77), twice(size, 0x33);
    const int status = ask(once.data());
    ask(twice.data());
    std::string text = std::to_string(status);
    for (std::size_t i = 0; i < size;) {
        const std::size_t begin = i;
        while (i < size && (once[i] != 0x77 || twice[i] != 0x33)) ++i;
        if (i != begin) text += " " + std::to_string(begin) + "-" + std::to_string(i);
        else ++i;
    }
    return text;
}

void ask_texts(Questions& answers, nvmlDevice_t device) {
    const auto text = [&](const char* name, unsigned size, auto&&... first) {
        char buffer[256];
        std::memset(buffer, '?', sizeof buffer);
        const int status = call(name, first..., static_cast<char*>(buffer), size);
        answers.give(std::string(name) + " in " + std::to_string(size), std::to_string(status) + (status ? std::string(buffer[0] == '?' ? " untouched" : " touched") : std::string()));
    };
    for (unsigned size : {0u, 1u, 2u, 4u, 80u, 96u}) {
        text("nvmlSystemGetDriverVersion", size);
        text("nvmlSystemGetNVMLVersion", size);
        text("nvmlDeviceGetName", size, device);
        text("nvmlDeviceGetUUID", size, device);
        text("nvmlSystemGetProcessName", size, static_cast<unsigned>(getpid()));
    }
    char buffer[256] = "";
    answers.give("process 0's name", std::to_string(call("nvmlSystemGetProcessName", 0u, static_cast<char*>(buffer), 256u)));
    answers.give("no process' name", std::to_string(call("nvmlSystemGetProcessName", 4000000u, static_cast<char*>(buffer), 256u)));
    if (call("nvmlSystemGetProcessName", static_cast<unsigned>(getpid()), static_cast<char*>(buffer), 256u) == 0) answers.give("own name begins", std::string(buffer).substr(0, 1) + (std::strchr(buffer, ' ') ? " with words" : ""));
    call("nvmlSystemGetDriverVersion", static_cast<char*>(buffer), 80u);
    const std::string driver = buffer;
    answers.give("driver version's form", hidden(driver));
    call("nvmlSystemGetNVMLVersion", static_cast<char*>(buffer), 80u);
    answers.give("NVML's is the driver's behind CUDA's", std::string(buffer).substr(3) == driver);
    nvmlSystemDriverBranchInfo_v1_t branch{structure_version<nvmlSystemDriverBranchInfo_v1_t>(1), ""};
    if (dlsym(library, "nvmlSystemGetDriverBranch")) {
        answers.give("driver branch", std::to_string(call("nvmlSystemGetDriverBranch", &branch, 80u)) + " " + hidden(branch.branch));
        branch.version = 1;
        answers.give("driver branch of another version", call("nvmlSystemGetDriverBranch", &branch, 80u));
    }
    for (int code : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 500, 999, -1})
        answers.give("text of " + std::to_string(code), reinterpret_cast<const char* (*)(int)>(dlsym(library, "nvmlErrorString"))(code));
}

std::string uuid_of(nvmlDevice_t device) {
    char text[96] = "";
    call("nvmlDeviceGetUUID", device, static_cast<char*>(text), 96u);
    return text;
}

void ask_handles(Questions& answers, nvmlDevice_t device) {
    unsigned count = 0;
    must("nvmlDeviceGetCount_v2", &count);
    nvmlDevice_t found = nullptr;
    answers.give("handle behind the last", call("nvmlDeviceGetHandleByIndex_v2", count, &found));
    answers.give("handle of -1", call("nvmlDeviceGetHandleByIndex_v2", ~0u, &found));
    answers.give("v1 handle", std::to_string(call("nvmlDeviceGetHandleByIndex", 0u, &found)) + (found == device ? " same" : " another"));
    const std::string uuid = uuid_of(device);
    std::string upper = uuid, half = uuid.substr(0, 12), longer = uuid + "0", bare = uuid.substr(4), wrong = uuid;
    for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    wrong.back() = wrong.back() == '0' ? '1' : '0';
    answers.give("uuid's form", hidden(uuid.substr(0, 4)) + " " + std::to_string(uuid.size()));
    const auto by_uuid = [&](const char* what, const std::string& text) {
        found = nullptr;
        const int status = call("nvmlDeviceGetHandleByUUID", text.c_str(), &found);
        answers.give(std::string("by uuid, ") + what, std::to_string(status) + (found == device ? " same" : found ? " another" : " none"));
    };
    by_uuid("itself", uuid);
    by_uuid("capitals", upper);
    by_uuid("half", half);
    by_uuid("longer", longer);
    by_uuid("without GPU-", bare);
    by_uuid("another", wrong);
    by_uuid("empty", "");
    by_uuid("words", "nothing");
    by_uuid("MIG", "MIG-" + bare);
    nvmlPciInfo_t pci{};
    must("nvmlDeviceGetPciInfo_v3", device, &pci);
    answers.give("bus id's form", hidden(pci.busId) + " " + hidden(pci.busIdLegacy) + " " + std::to_string(std::strlen(pci.busId)) + " " + std::to_string(std::strlen(pci.busIdLegacy)));
    const std::string id = pci.busId, legacy = pci.busIdLegacy;
    const auto by_bus = [&](const char* what, const std::string& text) {
        for (const char* name : {"nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByPciBusId"}) {
            found = nullptr;
            const int status = call(name, text.c_str(), &found);
            answers.give(std::string(name) + " " + what, std::to_string(status) + (found == device ? " same" : found ? " another" : " none"));
        }
    };
    by_bus("itself", id);
    by_bus("legacy", legacy);
    by_bus("without domain", id.substr(9));
    by_bus("without function", id.substr(0, id.size() - 2));
    by_bus("short domain", id.substr(7));
    by_bus("another", "0000:7F:1E.0");
    by_bus("another function", id.substr(0, id.size() - 1) + "1");
    by_bus("empty", "");
    by_bus("words", "nothing");
    by_bus("words behind", id + " x");
    answers.give("by serial, empty", call("nvmlDeviceGetHandleBySerial", "", &found));
    answers.give("by serial, words", call("nvmlDeviceGetHandleBySerial", "nothing", &found));
    for (unsigned type : {0u, 1u, 2u, 3u}) {
        nvmlUUID_v1_t key{};
        key.version = structure_version<nvmlUUID_v1_t>(1);
        key.type = type;
        if (type == 2) {
            std::string digits;
            for (char c : bare)
                if (c != '-') digits += c;
            for (int i = 0; i < 16; ++i) key.value.bytes[i] = static_cast<unsigned char>(std::stoi(digits.substr(2 * i, 2), nullptr, 16));
        } else {
            std::strncpy(key.value.str, uuid.c_str(), sizeof key.value.str);
        }
        if (!dlsym(library, "nvmlDeviceGetHandleByUUIDV")) break;
        found = nullptr;
        const int status = call("nvmlDeviceGetHandleByUUIDV", &key, &found);
        answers.give("by typed uuid " + std::to_string(type), std::to_string(status) + (found == device ? " same" : found ? " another" : " none"));
        key.version = 1;
        answers.give("by typed uuid of another version " + std::to_string(type), call("nvmlDeviceGetHandleByUUIDV", &key, &found));
    }
}

void ask_structures(Questions& answers, nvmlDevice_t device) {
    for (const char* name : {"nvmlDeviceGetPciInfo", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetGpuFabricInfo", "nvmlDeviceGetBAR1MemoryInfo", "nvmlDeviceGetAttributes_v2"})
        answers.give(std::string("written by ") + name, written(256, [&](void* room) { return call(name, device, room); }));
    answers.give("written by confidential state", written(64, [&](void* room) { return call("nvmlSystemGetConfComputeState", room); }));
    nvmlConfComputeSystemState_t state{7, 7, 7};
    const int status = call("nvmlSystemGetConfComputeState", &state);
    answers.give("confidential state", std::to_string(status) + " " + std::to_string(state.environment) + " " + std::to_string(state.ccFeature) + " " + std::to_string(state.devToolsMode));
    nvmlSystemConfComputeSettings_v1_t settings{structure_version<nvmlSystemConfComputeSettings_v1_t>(1), 7, 7, 7, 7};
    const int settings_status = call("nvmlSystemGetConfComputeSettings", &settings);
    answers.give("confidential settings", std::to_string(settings_status) + " " + std::to_string(settings.environment) + " " + std::to_string(settings.ccFeature) + " " + std::to_string(settings.devToolsMode) + " " + std::to_string(settings.multiGpuMode));
    settings.version = 5;
    answers.give("confidential settings of another version", call("nvmlSystemGetConfComputeSettings", &settings));
    nvmlMemory_t memory{};
    answers.give("memory", call("nvmlDeviceGetMemoryInfo", device, &memory));
    answers.give("memory adds up", memory.free + memory.used == memory.total);
    nvmlMemory_v2_t second{};
    answers.give("memory v2 without a version", call("nvmlDeviceGetMemoryInfo_v2", device, &second));
    second.version = structure_version<nvmlMemory_v2_t>(2);
    answers.give("memory v2", call("nvmlDeviceGetMemoryInfo_v2", device, &second));
    answers.give("memory v2 adds up", second.free + second.used + second.reserved == second.total);
    answers.give("v1's use is v2's and what is reserved", memory.used == second.used + second.reserved);
    answers.give("totals are equal", memory.total == second.total);
    second.version = structure_version<nvmlMemory_v2_t>(1);
    answers.give("memory v2 as v1", call("nvmlDeviceGetMemoryInfo_v2", device, &second));
    const auto fabric = [&](auto info, unsigned version) {
        info.version = version > 9 ? version : structure_version<decltype(info)>(version);
        const int result = call("nvmlDeviceGetGpuFabricInfoV", device, &info);
        answers.give("fabric v" + std::to_string(version), std::to_string(result) + (result ? "" : " status " + std::to_string(info.status) + " clique " + std::to_string(info.cliqueId) + " state " + std::to_string(info.state) + " health " + std::to_string(info.healthMask) + " " + hex(info.clusterUuid, 16)));
    };
    fabric(nvmlGpuFabricInfo_v2_t{}, 2);
    fabric(nvmlGpuFabricInfo_v3_t{}, 3);
    fabric(nvmlGpuFabricInfo_v3_t{}, 77);
    nvmlPciInfoExt_v1_t pci{};
    pci.version = structure_version<nvmlPciInfoExt_v1_t>(1);
    if (dlsym(library, "nvmlDeviceGetPciInfoExt")) answers.give("pci ext", std::to_string(call("nvmlDeviceGetPciInfoExt", device, &pci)) + " class " + std::to_string(pci.baseClass) + " " + std::to_string(pci.subClass));
}

void ask_processes(Questions& answers, nvmlDevice_t device) {
    for (const char* kind : {"Compute", "Graphics", "MPSCompute"})
        for (const char* version : {"", "_v2", "_v3"}) {
            const std::string name = std::string("nvmlDeviceGet") + kind + "RunningProcesses" + version;
            unsigned count = 0;
            const int without = call(name.c_str(), device, &count, static_cast<void*>(nullptr));
            if (count == 0) answers.give(name + " without room", without); // nobody uses the device
            std::vector<nvmlProcessInfo_v2_t> list(64);
            count = 64;
            answers.give(name, call(name.c_str(), device, &count, static_cast<void*>(list.data())));
            count = 5;
            answers.give(name + " nowhere", call(name.c_str(), device, &count, static_cast<void*>(nullptr)));
        }
    // A process that uses the device shows itself.
    if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL)) return;
    void* const saved = library;
    library = dlopen("libcuda.so.1", RTLD_NOW);
    void* context = nullptr;
    std::uint64_t memory = 0;
    must("cuInit", 0u);
    unsigned count = 64;
    std::vector<nvmlProcessInfo_v2_t> list(64);
    // Others may use the device, too: only this process counts.
    std::uint64_t used = 0;
    const auto own = [&] {
        library = saved;
        count = 64;
        const int status = call("nvmlDeviceGetComputeRunningProcesses_v3", device, &count, static_cast<void*>(list.data()));
        library = dlopen("libcuda.so.1", RTLD_NOW);
        for (unsigned i = 0; i < count && status == 0; ++i) {
            if (list[i].pid != static_cast<unsigned>(getpid())) continue;
            used = list[i].usedGpuMemory;
            return "listed " + std::to_string(static_cast<int>(list[i].gpuInstanceId)) + " " + std::to_string(static_cast<int>(list[i].computeInstanceId));
        }
        return std::to_string(status) + " not listed";
    };
    answers.give("processes after cuInit", own());
    must("cuDevicePrimaryCtxRetain", &context, 0);
    answers.give("processes with a context", own());
    const auto used_before = used;
    must("cuCtxSetCurrent", context);
    must("cuMemAlloc_v2", &memory, std::size_t{256} << 20);
    own();
    answers.give("an allocation of 256 MiB is added", static_cast<long long>((used - used_before) >> 20));
    library = saved;
    for (unsigned room : {0u, 1u}) {
        count = room;
        const int status = call("nvmlDeviceGetComputeRunningProcesses_v3", device, &count, static_cast<void*>(room ? list.data() : nullptr));
        answers.give("one process in room for " + std::to_string(room), std::to_string(status) + (room ? "" : count >= 1 ? " at least one" : " none"));
    }
    const auto old = written(256, [&](void* place) {
        count = 5;
        return call("nvmlDeviceGetComputeRunningProcesses", device, &count, place);
    });
    answers.give("written by v1 of processes", old);
    answers.give("written by v2 of processes", written(256, [&](void* place) {
        count = 5;
        return call("nvmlDeviceGetComputeRunningProcesses_v2", device, &count, place);
    }));
    library = dlopen("libcuda.so.1", RTLD_NOW);
    must("cuMemFree_v2", memory);
    must("cuDevicePrimaryCtxReset_v2", 0);
    answers.give("processes after a reset", own());
    library = saved;
}

void ask_values(Questions& answers, nvmlDevice_t device) {
    const auto number = [&](const char* name, auto... inputs) {
        unsigned values[4] = {0x7777, 0x7777, 0x7777, 0x7777};
        const int status = call(name, device, inputs..., &values[0], &values[1]);
        std::string question = name;
        ((question += " " + std::to_string(inputs)), ...);
        answers.give(question, std::to_string(status) + (status ? "" : " " + std::to_string(values[0]) + (values[1] == 0x7777 ? "" : " " + std::to_string(values[1]))));
    };
    for (const char* name : {"nvmlDeviceGetIndex", "nvmlDeviceGetMultiGpuBoard", "nvmlDeviceGetDisplayMode", "nvmlDeviceGetDisplayActive", "nvmlDeviceGetComputeMode", "nvmlDeviceGetArchitecture", "nvmlDeviceGetMigMode", "nvmlDeviceIsMigDeviceHandle", "nvmlDeviceGetVirtualizationMode",
                             "nvmlDeviceGetCudaComputeCapability", "nvmlDeviceGetNumGpuCores", "nvmlDeviceGetMemoryBusWidth", "nvmlDeviceGetBrand", "nvmlDeviceGetPersistenceMode", "nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetAccountingMode", "nvmlDeviceGetModuleId", "nvmlDeviceGetNumaNodeId", "nvmlDeviceGetEccMode", "nvmlDeviceGetPowerSource", "nvmlDeviceGetBusType", "nvmlDeviceGetGspFirmwareMode", "nvmlDeviceGetNumFans", "nvmlDeviceGetAdaptiveClockInfoStatus", "nvmlDeviceGetGpuInstanceId", "nvmlDeviceGetComputeInstanceId", "nvmlDeviceGetPerformanceState", "nvmlDeviceGetMaxPcieLinkGeneration", "nvmlDeviceGetMaxPcieLinkWidth", "nvmlDeviceGetPowerManagementLimit", "nvmlDeviceGetEncoderUtilization"})
        number(name);
    for (unsigned type : {0u, 1u, 2u, 3u, 4u, 9u}) {
        number("nvmlDeviceGetMaxClockInfo", type);
        unsigned value = 0;
        answers.give("clock " + std::to_string(type), call("nvmlDeviceGetClockInfo", device, type, &value));
        answers.give("temperature of sensor " + std::to_string(type), call("nvmlDeviceGetTemperature", device, type, &value));
    }
    for (unsigned link : {0u, 17u, 18u, 99u}) {
        number("nvmlDeviceGetNvLinkState", link);
        number("nvmlDeviceGetNvLinkVersion", link);
        number("nvmlDeviceGetNvLinkCapability", link, 0u);
        number("nvmlDeviceGetNvLinkRemoteDeviceType", link);
        nvmlPciInfo_t pci{};
        answers.give("remote of link " + std::to_string(link), call("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, link, &pci));
    }
    int level = 77;
    answers.give("ancestor with itself", std::to_string(call("nvmlDeviceGetTopologyCommonAncestor", device, device, &level)) + " " + std::to_string(level));
    for (unsigned index : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 9u}) {
        int peer = 77;
        const int status = call("nvmlDeviceGetP2PStatus", device, device, index, &peer);
        answers.give("peer status with itself " + std::to_string(index), std::to_string(status) + " " + std::to_string(peer));
    }
    for (int nearest : {0, 10, 20, 30, 40, 50, 60}) {
        unsigned count = 0;
        answers.give("nearest at level " + std::to_string(nearest), std::to_string(call("nvmlDeviceGetTopologyNearestGpus", device, nearest, &count, static_cast<void*>(nullptr))) + " " + std::to_string(count));
    }
    int same = 77;
    answers.give("on the same board as itself", std::to_string(call("nvmlDeviceOnSameBoard", device, device, &same)) + " " + std::to_string(same));
    for (unsigned size : {0u, 1u, 2u, 16u}) {
        unsigned long set[16] = {};
        answers.give("cpus in " + std::to_string(size), call("nvmlDeviceGetCpuAffinity", device, size, &set[0]));
        for (unsigned scope : {0u, 1u, 2u}) {
            answers.give("cpus in " + std::to_string(size) + " of scope " + std::to_string(scope), call("nvmlDeviceGetCpuAffinityWithinScope", device, size, &set[0], scope));
            answers.give("nodes in " + std::to_string(size) + " of scope " + std::to_string(scope), call("nvmlDeviceGetMemoryAffinity", device, size, &set[0], scope));
        }
    }
    unsigned count = 0;
    answers.give("units", std::to_string(call("nvmlUnitGetCount", &count)) + " " + std::to_string(count));
    nvmlUnit_t unit = nullptr;
    answers.give("unit 0", call("nvmlUnitGetHandleByIndex", 0u, &unit));
    nvmlDevice_t mig = nullptr;
    answers.give("MIG device 0", call("nvmlDeviceGetMigDeviceHandleByIndex", device, 0u, &mig));
    count = 77;
    answers.give("excluded devices", std::to_string(call("nvmlGetExcludedDeviceCount", &count)) + " " + std::to_string(count));
    std::vector<nvmlFieldValue_t> fields(320);
    for (unsigned i = 0; i < fields.size(); ++i) fields[i].fieldId = i;
    answers.give("fields", call("nvmlDeviceGetFieldValues", device, static_cast<int>(fields.size()), fields.data()));
    for (const nvmlFieldValue_t& field : fields)
        answers.give("field " + std::to_string(field.fieldId), std::to_string(field.nvmlReturn) + (field.nvmlReturn ? "" : " type " + std::to_string(field.valueType)));
    answers.give("no fields", call("nvmlDeviceGetFieldValues", device, 0, fields.data()));
    answers.give("fields nowhere", call("nvmlDeviceGetFieldValues", device, 1, static_cast<void*>(nullptr)));
}

/// Where there are two devices: how they see each other.
void ask_second(Questions& answers, nvmlDevice_t device) {
    nvmlDevice_t second = nullptr;
    if (call("nvmlDeviceGetHandleByIndex_v2", 1u, &second) != 0) return;
    int level = 77, same = 77;
    answers.give("second: ancestor", std::to_string(call("nvmlDeviceGetTopologyCommonAncestor", device, second, &level)) + " " + std::to_string(level));
    answers.give("second: on the same board", std::to_string(call("nvmlDeviceOnSameBoard", device, second, &same)) + " " + std::to_string(same));
    for (unsigned index : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 9u}) {
        int peer = 77;
        const int status = call("nvmlDeviceGetP2PStatus", device, second, index, &peer);
        answers.give("second: peer status " + std::to_string(index), std::to_string(status) + " " + std::to_string(peer));
    }
    for (int nearest : {0, 10, 20, 30, 40, 50, 60}) {
        unsigned count = 0;
        const int status = call("nvmlDeviceGetTopologyNearestGpus", device, nearest, &count, static_cast<void*>(nullptr));
        answers.give("second: nearest at level " + std::to_string(nearest), std::to_string(status) + " " + std::to_string(count));
    }
    unsigned minor = 77, index = 77, module = 77, board = 77, first_board = 77;
    answers.give("second: index", std::to_string(call("nvmlDeviceGetIndex", second, &index)) + " " + std::to_string(index));
    answers.give("second: minor number is", std::to_string(call("nvmlDeviceGetMinorNumber", second, &minor)));
    answers.give("second: module", std::to_string(call("nvmlDeviceGetModuleId", second, &module)));
    call("nvmlDeviceGetBoardId", second, &board);
    call("nvmlDeviceGetBoardId", device, &first_board);
    answers.give("second: board id is another", board != first_board);
    nvmlPciInfo_t pci{};
    must("nvmlDeviceGetPciInfo_v3", second, &pci);
    answers.give("second: board id of the place", board == (pci.domain << 16 | pci.bus << 8 | pci.device));
    unsigned count = 1;
    nvmlDevice_t nearest = nullptr;
    answers.give("second: one of the nearest", std::to_string(call("nvmlDeviceGetTopologyNearestGpus", device, 50, &count, &nearest)) + " " + std::to_string(count) + (nearest == second ? " it" : ""));
    count = 5;
    nvmlDevice_t list[5] = {};
    answers.give("second: near the first CPU", std::to_string(call("nvmlSystemGetTopologyGpuSet", 0u, &count, &list[0])) + " " + std::to_string(count));
}

} // namespace

int main(int count, char** words) {
    Questions answers(count, words);
    struct sigaction action {};
    action.sa_handler = crashed;
    sigaction(SIGSEGV, &action, nullptr);
    sigaction(SIGBUS, &action, nullptr);
    sigaction(SIGABRT, &action, nullptr);
    sigaction(SIGFPE, &action, nullptr);
    ask_all(answers, "uninitialized", 0, false);
    answers.give("shutdown before init", call("nvmlShutdown"));
    answers.give("init", call("nvmlInit_v2"));
    answers.give("init again", call("nvmlInit"));
    for (unsigned flags : {0u, 1u, 2u, 4u, 8u, 0x80000000u}) {
        const int status = call("nvmlInitWithFlags", flags);
        answers.give("init with flags " + std::to_string(flags), status);
        if (status == 0) must("nvmlShutdown");
    }
    answers.give("shutdown", call("nvmlShutdown"));
    nvmlDevice_t device = nullptr;
    answers.give("still initialized", call("nvmlDeviceGetHandleByIndex_v2", 0u, &device));
    ask_texts(answers, device);
    ask_handles(answers, device);
    ask_structures(answers, device);
    ask_values(answers, device);
    ask_second(answers, device);
    ask_all(answers, "device", reinterpret_cast<std::uint64_t>(device), true);
    ask_all(answers, "zeros", 0, false);
    ask_processes(answers, device);
    must("nvmlShutdown");
    return answers.finish();
}
