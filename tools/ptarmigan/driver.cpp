// SPDX-License-Identifier: Apache-2.0
// `ptarmigan driver`: every entry of the driver API and what becomes of a call, from the table that libcuda.so.1 is
// made of.
#include "tools/ptarmigan/commands.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace ptarmigan::tool {
namespace {

enum class State { works, refused, missing };

/// One export, as driver_api.def has it.
struct Row {
    std::string_view name, base;
    int since;
    State state;
    std::string_view why; ///< of what is refused
};

constexpr Row rows[] = {
#define IMPLEMENTED(name, base, since, streams) {#name, #base, since, State::works, ""},
#define UNSUPPORTED(name, base, since, streams) {#name, #base, since, State::missing, "not there yet"},
#define REFUSED(name, base, since, streams, code, why) {#name, #base, since, State::refused, why},
#include "runtime/shim/driver_api.def"
#undef IMPLEMENTED
#undef UNSUPPORTED
#undef REFUSED
};

/// The area of an entry: the first line whose prefix its base name has.
constexpr struct {
    std::string_view prefix, area;
} areas[] = {
    {"cuGraphics", "graphics"},
    {"cuGL", "graphics"},
    {"cuEGL", "graphics"},
    {"cuVDPAU", "graphics"},
    {"cuEventCreateFromEGL", "graphics"},
    {"cuDeviceGraphMem", "graphs"},
    {"cuDeviceGetGraphMem", "graphs"},
    {"cuDeviceSetGraphMem", "graphs"},
    {"cuGraph", "graphs"},
    {"cuUserObject", "graphs"},
    {"cuStreamBegin", "stream capture"},
    {"cuStreamEnd", "stream capture"},
    {"cuStreamGetCapture", "stream capture"},
    {"cuStreamIsCapturing", "stream capture"},
    {"cuStreamUpdateCapture", "stream capture"},
    {"cuThreadExchange", "stream capture"},
    {"cuStreamBatchMemOp", "stream memory operations"},
    {"cuStreamW", "stream memory operations"},
    {"cuStream", "streams and events"},
    {"cuEvent", "streams and events"},
    {"cuLaunchHostFunc", "streams and events"},
    {"cuGreenCtx", "green contexts"},
    {"cuCtxFromGreenCtx", "green contexts"},
    {"cuDevResource", "green contexts"},
    {"cuDevSm", "green contexts"},
    {"cuCtxGetDevResource", "green contexts"},
    {"cuDeviceGetDevResource", "green contexts"},
    {"cuCtx", "contexts"},
    {"cuDevicePrimaryCtx", "contexts"},
    {"cuDeviceGetDefaultMemPool", "memory pools"},
    {"cuDeviceGetMemPool", "memory pools"},
    {"cuDeviceSetMemPool", "memory pools"},
    {"cuMemPool", "memory pools"},
    {"cuMemAllocAsync", "memory pools"},
    {"cuMemAllocFromPool", "memory pools"},
    {"cuMemFreeAsync", "memory pools"},
    {"cuMemGetDefaultMemPool", "memory pools"},
    {"cuMemGetMemPool", "memory pools"},
    {"cuMemSetMemPool", "memory pools"},
    {"cuDeviceGetNvSci", "external memory and semaphores"},
    {"cuImportExternal", "external memory and semaphores"},
    {"cuExternal", "external memory and semaphores"},
    {"cuDestroyExternal", "external memory and semaphores"},
    {"cuSignalExternal", "external memory and semaphores"},
    {"cuWaitExternal", "external memory and semaphores"},
    {"cuDeviceGetFabric", "fabric"},
    {"cuDeviceGetClique", "fabric"},
    {"cuFabric", "fabric"},
    {"cuLogicalEndpoint", "fabric"},
    {"cuDevice", "devices"},
    {"cuDriver", "devices"},
    {"cuInit", "devices"},
    {"cuGet", "devices"},
    {"cuIpc", "sharing between processes"},
    {"cuMulticast", "virtual memory"},
    {"cuMemAddress", "virtual memory"},
    {"cuMemCreate", "virtual memory"},
    {"cuMemExport", "virtual memory"},
    {"cuMemImport", "virtual memory"},
    {"cuMemGetAccess", "virtual memory"},
    {"cuMemGetAllocation", "virtual memory"},
    {"cuMemGetHandle", "virtual memory"},
    {"cuMemMap", "virtual memory"},
    {"cuMemRelease", "virtual memory"},
    {"cuMemRetain", "virtual memory"},
    {"cuMemSetAccess", "virtual memory"},
    {"cuMemUnmap", "virtual memory"},
    {"cuMemcpy", "copies and fills"},
    {"cuMemset", "copies and fills"},
    {"cuMemBatchDecompress", "copies and fills"},
    {"cuMem", "memory"},
    {"cuPointer", "memory"},
    {"cuFlushGPUDirect", "memory"},
    {"cuArray", "arrays and textures"},
    {"cuMipmapped", "arrays and textures"},
    {"cuTex", "arrays and textures"},
    {"cuSurf", "arrays and textures"},
    {"cuTensorMap", "tensor maps"},
    {"cuModule", "modules and linking"},
    {"cuLibrary", "modules and linking"},
    {"cuLink", "modules and linking"},
    {"cuFunc", "functions and launches"},
    {"cuKernel", "functions and launches"},
    {"cuLaunch", "functions and launches"},
    {"cuOccupancy", "functions and launches"},
    {"cuParam", "functions and launches"},
    {"cuCoredump", "tools"},
    {"cuCheckpoint", "tools"},
    {"cuLogs", "tools"},
    {"cuProfiler", "tools"},
};

std::string area_of(std::string_view base) {
    for (const auto& [prefix, area] : areas)
        if (base.substr(0, prefix.size()) == prefix) return std::string(area);
    return "other";
}

const char* text_of(State state) {
    return state == State::works ? "works" : state == State::refused ? "refused" : "missing";
}

struct DriverOptions {
    bool missing = false, refused = false, markdown = false, json = false, summary = false;
    bool wants(const Row& row) const {
        if (!missing && !refused) return true;
        return (missing && row.state == State::missing) || (refused && row.state == State::refused);
    }
};

/// "12.5" for 12050; nothing where only dlsym finds it.
std::string version_text(int since) {
    return since == 0 ? "-" : std::to_string(since / 1000) + "." + std::to_string(since % 1000 / 10);
}

void print_summary(const DriverOptions& options) {
    std::map<std::string, std::map<State, unsigned>> counts;
    std::map<State, unsigned> total;
    for (const Row& row : rows)
        if (options.wants(row)) ++counts[area_of(row.base)][row.state], ++total[row.state];
    const auto print = [](const std::string& name, std::map<State, unsigned>& count) {
        std::printf("%-32s %4u entries %4u work %4u refused %4u missing\n", name.c_str(),
                    count[State::works] + count[State::refused] + count[State::missing], count[State::works],
                    count[State::refused], count[State::missing]);
    };
    for (auto& [area, count] : counts) print(area, count);
    print("all entries", total);
}

void print_row(const DriverOptions& options, const Row& row, bool first) {
    const std::string area = area_of(row.base), since = version_text(row.since), name(row.name), why(row.why);
    if (options.json)
        std::printf(
            "%s\n  {\"entry\": \"%s\", \"area\": \"%s\", \"since\": \"%s\", \"state\": \"%s\", \"why\": \"%s\"}",
            first ? "" : ",", name.c_str(), area.c_str(), since.c_str(), text_of(row.state), why.c_str());
    else if (options.markdown)
        std::printf("| %s | %s | %s | %s | %s |\n", name.c_str(), area.c_str(), since.c_str(), text_of(row.state),
                    why.c_str());
    else
        std::printf("%-52s %-30s %-5s %s%s%s\n", name.c_str(), area.c_str(), since.c_str(), text_of(row.state),
                    why.empty() ? "" : ": ", why.c_str());
}

int driver(const DriverOptions& options) {
    if (options.summary) {
        print_summary(options);
        return exit_success;
    }
    if (options.markdown) std::printf("| entry | area | CUDA | state | why |\n|---|---|---|---|---|\n");
    if (options.json) std::printf("[");
    bool first = true;
    for (const Row& row : rows) {
        if (!options.wants(row)) continue;
        print_row(options, row, first);
        first = false;
    }
    if (options.json) std::printf("\n]\n");
    return exit_success;
}

} // namespace

void add_driver_command(CLI::App& app, int& exit_code) {
    auto options = std::make_shared<DriverOptions>();
    auto* command =
        app.add_subcommand("driver", "Print every entry of the driver API: works, refused, missing, and why");
    command->footer(
        "An entry is an exported symbol: versions and forms for either default stream are entries of their own.\n"
        "Refused entries need what a CPU does not have, or are refused by NVIDIA's driver too; missing ones are to come.\n"
        "Both say their name once on stderr and return an error. CUDA: the version from which cuGetProcAddress finds the entry.");
    command->add_flag("--missing", options->missing, "only entries that are not there yet");
    command->add_flag("--refused", options->refused, "only entries that are refused, with the reason");
    auto* markdown = command->add_flag("--markdown", options->markdown, "as a Markdown table");
    auto* json = command->add_flag("--json", options->json, "as JSON");
    auto* summary = command->add_flag("--summary", options->summary, "counts per area");
    markdown->excludes(json)->excludes(summary);
    json->excludes(summary);
    command->callback([options, &exit_code] { exit_code = driver(*options); });
}

} // namespace ptarmigan::tool
