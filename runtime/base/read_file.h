// SPDX-License-Identifier: Apache-2.0
// Files that programs name.
#pragma once

#include "runtime/base/status.h"

#include <string>

namespace ptarmigan::runtime {

/// The bytes of a file. As an H100's driver (580) answers: invalid_value for an empty name, file_not_found for one that
/// can't be opened, out_of_memory for a directory (and for what can't be read). May throw std::bad_alloc.
Status read_file(const std::string& path, std::string& bytes);

} // namespace ptarmigan::runtime
