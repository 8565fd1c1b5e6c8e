// SPDX-License-Identifier: Apache-2.0
// --query-gpu and --query-compute-apps, as comma-separated values.
#include "tools/ptarmigan/smi/smi_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace ptarmigan::tool::smi {
namespace {

constexpr char not_available[] = "[N/A]";

struct Field {
    std::string_view name, alias, unit;
    /// Null: there is no answer.
    std::string (*value)(const SystemState& system, const DeviceState& device);
};

std::string in_mebibytes(std::uint64_t bytes) {
    return fmt::format("{}", mebibytes(bytes));
}

constexpr Field fields_table[] = {
#define FIELD(name, alias, unit, value)                                                                                \
    {name, alias, unit, [](const SystemState& system, const DeviceState& device) -> std::string {                      \
         (void)system, (void)device;                                                                                   \
         return value;                                                                                                 \
     }},
#define NONE(name, alias, unit) {name, alias, unit, nullptr},
#include "tools/ptarmigan/smi/smi_fields.def"
#undef FIELD
#undef NONE
};

struct ProcessField {
    std::string_view name, alias, unit;
    std::string (*value)(const DeviceState& device, const Process& process);
};

constexpr ProcessField process_fields[] = {
    {"timestamp", "", "", [](const DeviceState&, const Process&) { return short_time(); }},
    {"gpu_name", "", "", [](const DeviceState& device, const Process&) { return device.name; }},
    {"gpu_bus_id", "", "", [](const DeviceState& device, const Process&) { return device.bus_id; }},
    {"gpu_serial", "", "", nullptr},
    {"gpu_uuid", "", "", [](const DeviceState& device, const Process&) { return device.uuid; }},
    {"pid", "", "", [](const DeviceState&, const Process& process) { return fmt::format("{}", process.pid); }},
    {"process_name", "name", "", [](const DeviceState&, const Process& process) { return process.name; }},
    {"used_gpu_memory", "used_memory", "MiB",
     [](const DeviceState&, const Process& process) { return in_mebibytes(process.memory); }},
};

template <class Table> auto find(const Table& table, std::string_view name) -> decltype(&table[0]) {
    const auto found = std::find_if(std::begin(table), std::end(table), [&](const auto& field) {
        return name == field.name || (!name.empty() && name == field.alias);
    });
    return found == std::end(table) ? nullptr : &*found;
}

/// The fields that were asked for; an unknown one ends the search.
template <class Table> auto look_up(const Table& table, const std::vector<std::string>& names, std::string& unknown) {
    std::vector<decltype(&table[0])> fields;
    for (const std::string& name : names) {
        if (const auto* field = find(table, name))
            fields.push_back(field);
        else if (unknown.empty())
            unknown = name;
    }
    return fields;
}

template <class Fields> std::string header_line(const Fields& fields, CsvStyle style) {
    std::string line;
    for (const auto* field : fields) {
        line += (line.empty() ? "" : ", ") + std::string(field->name);
        if (style.units && !field->unit.empty()) line += fmt::format(" [{}]", field->unit);
    }
    return line + "\n";
}

std::string cell(const std::string& value, std::string_view unit, CsvStyle style) {
    return style.units && !unit.empty() ? fmt::format("{} {}", value, unit) : value;
}

template <class Fields, class... Subject>
std::string value_line(const Fields& fields, CsvStyle style, const Subject&... subject) {
    std::string line;
    for (const auto* field : fields) {
        if (field != fields.front()) line += ", ";
        line += field->value ? cell(field->value(subject...), field->unit, style) : not_available;
    }
    return line + "\n";
}

} // namespace

std::string csv_text(const SystemState& system, const std::vector<std::string>& names, CsvStyle style,
                     std::string& unknown) {
    const auto fields = look_up(fields_table, names, unknown);
    std::string text = style.header ? header_line(fields, style) : "";
    for (const DeviceState& device : system.devices) text += value_line(fields, style, system, device);
    return text;
}

std::string processes_csv_text(const SystemState& system, const std::vector<std::string>& names, CsvStyle style,
                               std::string& unknown) {
    const auto fields = look_up(process_fields, names, unknown);
    std::string text = style.header ? header_line(fields, style) : "";
    for (const DeviceState& device : system.devices)
        for (const Process& process : device.processes) text += value_line(fields, style, device, process);
    return text;
}

std::string fields_text() {
    std::string text = "Properties that --query-gpu takes:\n\n";
    for (const Field& field : fields_table)
        text +=
            fmt::format("\"{}\"{}{}\n", field.name, field.alias.empty() ? "" : fmt::format(" or \"{}\"", field.alias),
                        field.value ? "" : ": [N/A] here");
    return text;
}

} // namespace ptarmigan::tool::smi
