// SPDX-License-Identifier: Apache-2.0
// What nvidia-smi prints, of our devices: each function gives the whole text.
#pragma once

#include "tools/ptarmigan/smi/smi_device.h"

#include <string>
#include <vector>

namespace ptarmigan::tool::smi {

/// `nvidia-smi`: the table.
std::string summary_text(const SystemState& system);
/// `nvidia-smi -L`.
std::string list_text(const SystemState& system);
/// `nvidia-smi -q -d SECTIONS`; no sections: all.
std::string report_text(const SystemState& system, const std::vector<std::string>& sections);
/// True if `-d` knows the section.
bool is_section(const std::string& name);
/// `nvidia-smi topo -m`.
std::string topology_text(const SystemState& system);

struct CsvStyle {
    bool header = true, units = true;
};
/// `nvidia-smi --query-gpu=FIELDS --format=csv`. A field that does not exist comes back in `unknown`.
std::string csv_text(const SystemState& system, const std::vector<std::string>& fields, CsvStyle style,
                     std::string& unknown);
/// `nvidia-smi --query-compute-apps=FIELDS`.
std::string processes_csv_text(const SystemState& system, const std::vector<std::string>& fields, CsvStyle style,
                               std::string& unknown);
/// `nvidia-smi --help-query-gpu`: the names.
std::string fields_text();

} // namespace ptarmigan::tool::smi
