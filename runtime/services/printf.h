// SPDX-License-Identifier: Apache-2.0
// Device printf: formatted when it is called; context/printf_buffer.h keeps it until somebody waits.
#pragma once

#include <string>

namespace ptarmigan::runtime {

/// Formats like the device's vprintf: `arguments` holds the promoted values at their natural
/// alignment. `count` gets the number of arguments consumed. Conversions that CUDA does not know
/// are copied as they are.
std::string format_device_printf(const char* format, const void* arguments, int& count);

} // namespace ptarmigan::runtime
