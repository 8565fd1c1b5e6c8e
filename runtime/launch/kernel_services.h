// SPDX-License-Identifier: Apache-2.0
// The functions that generated code calls. Launches hand them to the code; services/, which is above them, defines the
// table.
#pragma once

#include "translator/kernel_abi.h"

namespace ptarmigan::runtime {

/// The table for LaunchContext::services. Constant.
const abi::Services& kernel_services();

} // namespace ptarmigan::runtime
