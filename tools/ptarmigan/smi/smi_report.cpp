// SPDX-License-Identifier: Apache-2.0
// `nvidia-smi -q`: a list of names and values, and `topo -m`.
#include "tools/ptarmigan/smi/smi_text.h"

#include <fmt/format.h>

#include <sched.h>

#include <algorithm>
#include <cctype>

namespace ptarmigan::tool::smi {
namespace {

/// Lines of "name : value", the values in one column.
class Lines {
public:
    void line(int depth, std::string_view name, std::string_view value) {
        constexpr int column = 55;
        text_ += fmt::format("{:{}}{:<{}}: {}\n", "", 4 * depth, name, column - 4 * depth, value);
    }
    void title(int depth, std::string_view name) { text_ += fmt::format("{:{}}{}\n", "", 4 * depth, name); }
    void memory(int depth, std::string_view name, std::uint64_t bytes) {
        line(depth, name, fmt::format("{} MiB", mebibytes(bytes)));
    }
    void missing(int depth, std::initializer_list<std::string_view> names) {
        for (const std::string_view name : names) line(depth, name, "N/A");
    }
    std::string text() const { return text_; }

private:
    std::string text_;
};

std::string architecture_text(unsigned architecture) {
    switch (architecture) { // NVML_DEVICE_ARCH_*
    case 3: return "Maxwell";
    case 4: return "Pascal";
    case 5: return "Volta";
    case 6: return "Turing";
    case 7: return "Ampere";
    case 8: return "Ada Lovelace";
    case 9: return "Hopper";
    case 10: return "Blackwell";
    default: return "N/A";
    }
}

void product(Lines& lines, const DeviceState& device) {
    constexpr int geforce = 5; // NVML_BRAND_GEFORCE
    lines.line(1, "Product Name", device.name);
    lines.line(1, "Product Brand", device.brand == geforce ? "GeForce" : "NVIDIA");
    lines.line(1, "Product Architecture", architecture_text(device.architecture));
    lines.line(1, "Display Active", "Disabled");
    lines.line(1, "Persistence Mode", "Enabled");
    lines.title(1, "MIG Mode");
    lines.line(2, "Current", "Disabled");
    lines.line(2, "Pending", "Disabled");
    lines.line(1, "Accounting Mode", "Disabled");
    lines.title(1, "Driver Model");
    lines.missing(2, {"Current", "Pending"});
    lines.line(1, "Serial Number", "N/A");
    lines.line(1, "GPU UUID", device.uuid);
    lines.line(1, "Minor Number", fmt::format("{}", device.minor));
    lines.line(1, "VBIOS Version", "N/A");
    lines.line(1, "MultiGPU Board", "No");
    lines.title(1, "GPU Virtualization Mode");
    lines.line(2, "Virtualization Mode", "None");
    lines.title(1, "PCI");
    lines.line(2, "Bus", fmt::format("0x{:02X}", device.pci_bus));
    lines.line(2, "Device", fmt::format("0x{:02X}", device.pci_device));
    lines.line(2, "Domain", fmt::format("0x{:04X}", device.pci_domain));
    lines.line(2, "Base Classcode", "0x3");
    lines.line(2, "Sub Classcode", "0x2");
    lines.line(2, "Device Id", fmt::format("0x{:08X}", device.pci_device_id));
    lines.line(2, "Bus Id", device.bus_id);
    lines.line(2, "Sub System Id", fmt::format("0x{:08X}", device.pci_subsystem_id));
    lines.line(1, "Fan Speed", "N/A");
}

void performance(Lines& lines, const DeviceState&) {
    lines.line(1, "Performance State", "N/A");
}

void memory(Lines& lines, const DeviceState& device) {
    lines.title(1, "FB Memory Usage");
    lines.memory(2, "Total", device.memory_total);
    lines.memory(2, "Reserved", device.memory_reserved);
    lines.memory(2, "Used", device.memory_used);
    lines.memory(2, "Free", device.memory_free);
    lines.title(1, "BAR1 Memory Usage");
    lines.missing(2, {"Total", "Used", "Free"});
}

void compute(Lines& lines, const DeviceState&) {
    lines.line(1, "Compute Mode", "Default");
}

void utilization(Lines& lines, const DeviceState& device) {
    lines.title(1, "Utilization");
    lines.line(2, "GPU", fmt::format("{} %", device.busy));
    lines.line(2, "Memory", fmt::format("{} %", device.memory_busy));
    lines.missing(2, {"Encoder", "Decoder", "JPEG", "OFA"});
}

void ecc(Lines& lines, const DeviceState&) {
    lines.title(1, "ECC Mode");
    lines.missing(2, {"Current", "Pending"});
}

void temperature(Lines& lines, const DeviceState&) {
    lines.title(1, "Temperature");
    lines.missing(2, {"GPU Current Temp", "GPU Shutdown Temp", "GPU Slowdown Temp", "Memory Current Temp"});
}

void power(Lines& lines, const DeviceState&) {
    lines.title(1, "GPU Power Readings");
    lines.missing(2, {"Average Power Draw", "Instantaneous Power Draw", "Current Power Limit"});
}

void clock(Lines& lines, const DeviceState& device) {
    lines.title(1, "Clocks");
    lines.missing(2, {"Graphics", "SM", "Memory", "Video"});
    lines.title(1, "Max Clocks");
    lines.line(2, "Graphics", fmt::format("{} MHz", device.max_clock));
    lines.line(2, "SM", fmt::format("{} MHz", device.max_clock));
    lines.line(2, "Memory", fmt::format("{} MHz", device.max_memory_clock));
    lines.line(2, "Video", "N/A");
}

void processes(Lines& lines, const DeviceState& device) {
    if (device.processes.empty()) {
        lines.line(1, "Processes", "None");
        return;
    }
    lines.title(1, "Processes");
    for (const Process& process : device.processes) {
        const auto narrow = [&](int depth, std::string_view name, const std::string& value) {
            constexpr int column = 42; // nvidia-smi has another one here
            lines.title(0, fmt::format("{:{}}{:<{}}: {}", "", 4 * depth, name, column - 4 * depth, value));
        };
        narrow(2, "GPU instance ID", "N/A");
        narrow(2, "Compute instance ID", "N/A");
        narrow(2, "Process ID", fmt::format("{}", process.pid));
        narrow(3, "Type", "C");
        narrow(3, "Name", process.name);
        narrow(3, "Used GPU Memory", fmt::format("{} MiB", mebibytes(process.memory)));
    }
}

/// In the order in which they are printed. Without -d all are.
constexpr struct {
    const char* name; ///< of -d; null: only without
    void (*print)(Lines& lines, const DeviceState& device);
} sections_table[] = {
    {nullptr, product},
    {"PERFORMANCE", performance},
    {"MEMORY", memory},
    {"COMPUTE", compute},
    {"UTILIZATION", utilization},
    {"ECC", ecc},
    {"TEMPERATURE", temperature},
    {"POWER", power},
    {"CLOCK", clock},
    {"PIDS", processes},
};

std::string capitals(std::string text) {
    for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return text;
}

bool wanted(const char* name, const std::vector<std::string>& sections) {
    if (sections.empty()) return true;
    return name && std::any_of(sections.begin(), sections.end(),
                               [&](const std::string& section) { return capitals(section) == name; });
}

/// "0-3,8": the CPUs of this process.
std::string cpu_ranges() {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    sched_getaffinity(0, sizeof cpus, &cpus);
    std::string text;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &cpus)) continue;
        const int first = cpu;
        while (cpu + 1 < CPU_SETSIZE && CPU_ISSET(cpu + 1, &cpus)) ++cpu;
        text += (text.empty() ? "" : ",") + std::to_string(first) + (cpu == first ? "" : "-" + std::to_string(cpu));
    }
    return text;
}

} // namespace

bool is_section(const std::string& name) {
    return std::any_of(std::begin(sections_table), std::end(sections_table),
                       [&](const auto& section) { return section.name && capitals(name) == section.name; });
}

std::string report_text(const SystemState& system, const std::vector<std::string>& sections) {
    std::string text = "\n==============NVSMI LOG==============\n\n";
    const auto top_line = [&](std::string_view name, const std::string& value) {
        text += fmt::format("{:<55}: {}\n", name, value);
    };
    top_line("Timestamp", long_time());
    top_line("Driver Version", system.driver_version);
    top_line("CUDA Version", system.cuda_version);
    text += "\n";
    top_line("Attached GPUs", fmt::format("{}", system.device_count));
    for (const DeviceState& device : system.devices) {
        text += fmt::format("GPU {}\n", device.bus_id);
        Lines body;
        for (const auto& section : sections_table)
            if (wanted(section.name, sections)) section.print(body, device);
        text += body.text() + "\n";
    }
    return text;
}

std::string topology_text(const SystemState& system) {
    std::string text = "\t";
    for (const DeviceState& device : system.devices) text += fmt::format("GPU{}\t", device.index);
    text += "CPU Affinity\tNUMA Affinity\tGPU NUMA ID\n";
    for (const DeviceState& device : system.devices) {
        text += fmt::format("GPU{}\t", device.index);
        for (const DeviceState& other : system.devices) text += other.index == device.index ? " X \t" : "PHB\t";
        text += cpu_ranges() + "\t0\t\tN/A\n";
    }
    return text +
           "\nLegend:\n\n  X    = Self\n  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)\n";
}

} // namespace ptarmigan::tool::smi
