// SPDX-License-Identifier: Apache-2.0
// Device code inside host files: ELF objects, libraries and programs that `nvcc -rdc=true` or
// `nvcc -dc` made keep it in the section __nv_relfatbin; archives hold such objects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ptarmigan::runtime {

struct DeviceCode {
    std::string member; ///< of an archive; empty otherwise
    std::span<const std::uint8_t> container;
};

/// Containers of relocatable device code in `file`, views into it. Nothing is trusted: what is
/// damaged ends the search of its object. False, and `why` says so, if the file is of no kind that
/// is known.
bool find_device_code(std::span<const std::uint8_t> file, std::vector<DeviceCode>& found, std::string& why);

/// Device code of a program or shared library, as its own code hands it to the driver.
struct ProgramCode {
    std::vector<std::span<const std::uint8_t>> containers; ///< each loaded by itself: .nv_fatbin
    std::vector<std::span<const std::uint8_t>> units;      ///< loaded linked, as one: __nv_relfatbin
};

/// The same for a linked ELF file. Nothing is found in files of other kinds.
ProgramCode find_program_code(std::span<const std::uint8_t> file);

} // namespace ptarmigan::runtime
