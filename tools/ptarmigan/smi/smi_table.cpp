// SPDX-License-Identifier: Apache-2.0
// The table and the list, column by column as nvidia-smi 580 prints them: programs cut them apart.
#include "tools/ptarmigan/smi/smi_text.h"

#include <fmt/format.h>

namespace ptarmigan::tool::smi {
namespace {

/// At most `width` characters: the end is cut off, or the beginning, which is said by dots.
std::string cut_end(const std::string& text, std::size_t width) {
    return text.size() <= width ? text : text.substr(0, width - 3) + "...";
}

std::string cut_beginning(const std::string& text, std::size_t width) {
    return text.size() <= width ? text : "..." + text.substr(text.size() - (width - 3));
}

std::string device_rows(const DeviceState& device) {
    const std::string memory = fmt::format("{}MiB", mebibytes(device.memory_total));
    std::string rows;
    rows += fmt::format("| {:3}  {:<30} On  |   {:>16} Off | {:>20} |\n", device.index, cut_end(device.name, 27),
                        device.bus_id, "N/A");
    rows += fmt::format("| {:>3}   {:>3}    {:<3} {:>14} / {:>5} | {:>10} / {:>9} | {:>7} {:>12} |\n", "N/A", "N/A",
                        "N/A", "N/A", "N/A", fmt::format("{}MiB", mebibytes(device.memory_used)), memory,
                        fmt::format("{}%", device.busy), "Default");
    rows += fmt::format("| {:39} | {:22} | {:>20} |\n", "", "", "Disabled");
    return rows;
}

std::string process_row(const DeviceState& device, const Process& process) {
    return fmt::format("| {:4}   N/A  N/A {:15} {:>6}   {:<36}{:>10} |\n", device.index, process.pid, "C",
                       cut_beginning(process.name, 36), fmt::format("{}MiB", mebibytes(process.memory)));
}

} // namespace

std::string summary_text(const SystemState& system) {
    std::string text = long_time() + "       \n";
    text += "+-----------------------------------------------------------------------------------------+\n";
    text += fmt::format("| PTARMIGAN-SMI {:<19} Driver Version: {:<14} CUDA Version: {:<8} |\n", system.driver_version,
                        system.driver_version, system.cuda_version);
    text += "+-----------------------------------------+------------------------+----------------------+\n"
            "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n"
            "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |\n"
            "|                                         |                        |               MIG M. |\n"
            "|=========================================+========================+======================|\n";
    for (const DeviceState& device : system.devices) {
        text += device_rows(device);
        text += "+-----------------------------------------+------------------------+----------------------+\n";
    }
    text += "\n"
            "+-----------------------------------------------------------------------------------------+\n"
            "| Processes:                                                                              |\n"
            "|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |\n"
            "|        ID   ID                                                               Usage      |\n"
            "|=========================================================================================|\n";
    std::string rows;
    for (const DeviceState& device : system.devices)
        for (const Process& process : device.processes) rows += process_row(device, process);
    text += rows.empty()
                ? "|  No running processes found                                                             |\n"
                : rows;
    text += "+-----------------------------------------------------------------------------------------+\n";
    return text;
}

std::string list_text(const SystemState& system) {
    std::string text;
    for (const DeviceState& device : system.devices)
        text += fmt::format("GPU {}: {} (UUID: {})\n", device.index, device.name, device.uuid);
    return text;
}

} // namespace ptarmigan::tool::smi
