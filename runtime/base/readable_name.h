// SPDX-License-Identifier: Apache-2.0
// Names of kernels for people: a template's mangled name may take hundreds of characters.
#pragma once

#include <string>

namespace ptarmigan::runtime {

/// The function's name and the scope that it is in, without arguments, return type and what stands between < and >:
/// "cub::DeviceScanKernel". A name that is not mangled is left as it is.
std::string readable_name(const std::string& mangled);

} // namespace ptarmigan::runtime
