// SPDX-License-Identifier: Apache-2.0
// Part of kernel_abi.h: functions that code is made for when they are first called. A library's table of functions can
// have hundreds (NCCL: 143 MB of PTX), of which a program calls a few.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace ptarmigan::abi {

/// In place of a ptx::DeviceRuntime, Services::device_runtime: returns the code of a function, of which `arguments` has
/// the ptx::FunctionId. The code is called as code of the same module calls functions: void (CtaContext*, i32 step, iW
/// active lanes, i64 offset of its frame in the thread's local memory). Faults don't return.
inline constexpr std::uint32_t late_function_call = 0xffffffffu;

} // namespace ptarmigan::abi

namespace ptarmigan::translator {

/// Calls that may reach so many functions are made late. Programs have tens of a kind, of which a kernel reaches most.
inline constexpr std::size_t least_late_candidates = 64;

/// What compile() takes for a kernel's name to make code for a function that the kernel calls late. No name in PTX has
/// a slash.
inline std::string late_function_name(std::string_view kernel, std::string_view function) {
    return std::string(kernel) + '/' + std::string(function);
}
/// The two parts; the second is empty for a kernel.
inline std::pair<std::string, std::string> split_late_name(const std::string& name) {
    const std::size_t slash = name.find('/');
    if (slash == std::string::npos) return {name, {}};
    return {name.substr(0, slash), name.substr(slash + 1)};
}

} // namespace ptarmigan::translator
