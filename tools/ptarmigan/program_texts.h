// SPDX-License-Identifier: Apache-2.0
// The PTX and machine code that programs, libraries and files would hand to the driver.
#pragma once

#include "frontend/sass/lift.h"

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ptarmigan::tool {

/// A text as the runtime would load it: byte for byte, since the cache knows texts by their hash.
struct ProgramText {
    std::string name; ///< the file's path
    std::string text;
    bool is_newer = false; ///< stands in for machine code: version and target may be newer than the device's
    std::shared_ptr<const sass::MachineCode>
        machine_code; ///< of which `text` has the declarations; null: there is none
};

struct ProgramTexts {
    std::vector<ProgramText> texts;            ///< each once
    std::map<std::string, std::size_t> faults; ///< why images yield none, and how many do
    std::size_t unsuitable = 0; ///< images without code for the device, of files that have some in others
    std::size_t unreadable = 0; ///< files, each named on stderr
    std::size_t files = 0;      ///< that were looked into
};

/// From .ptx files, fat binaries, cubins, and linked ELF files. Of a folder all files below it that are one of these;
/// links to folders are not followed.
ProgramTexts find_texts(const std::vector<std::string>& paths);

} // namespace ptarmigan::tool
