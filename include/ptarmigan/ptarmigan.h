// SPDX-License-Identifier: Apache-2.0
// Ptarmigan's own C++ interface (libptarmigan.so): run PTX kernels on the CPU without going through
// CUDA's API. Everything is opaque: no LLVM, no oneTBB. All functions are thread-safe; objects may
// be used by one thread at a time.
//
//     ptarmigan::Module module(ptx_text);
//     ptarmigan::Buffer buffer(1024 * sizeof(float));
//     module.launch("scale", {4}, {256}, {buffer.address(), 2.0f});
//     ptarmigan::synchronize();
//     buffer.download(host.data(), buffer.size());
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#define PTARMIGAN_API __attribute__((visibility("default")))

namespace ptarmigan {

/// What every function throws when it fails. code() has CUresult's numbers; what() says what was
/// wrong.
class PTARMIGAN_API Error : public std::runtime_error {
public:
    Error(int code, const std::string& text) : std::runtime_error(text), code_(code) {}
    int code() const { return code_; }

private:
    int code_;
};

/// The device as programs see it.
struct DeviceDescription {
    std::string name;
    int compute_capability = 0; ///< 90 for 9.0
    unsigned workers = 0;       ///< host threads that run CTAs
    std::size_t memory = 0;     ///< bytes
};
PTARMIGAN_API DeviceDescription describe_device();

/// Extents in x, y, z; missing ones are 1.
struct Extents {
    std::uint32_t x = 1, y = 1, z = 1;
};

/// The value of one kernel parameter: any trivially copyable type of the parameter's size.
class Argument {
public:
    template <class T> Argument(const T& value) : bytes_(sizeof(T)) {
        static_assert(std::is_trivially_copyable_v<T>);
        std::memcpy(bytes_.data(), &value, sizeof(T));
    }
    const std::vector<std::uint8_t>& bytes() const { return bytes_; }

private:
    std::vector<std::uint8_t> bytes_;
};

/// A piece of device memory, zeroed. Freed with the object, after the work that may use it.
class PTARMIGAN_API Buffer {
public:
    explicit Buffer(std::size_t size);
    ~Buffer();
    Buffer(Buffer&& other) noexcept;
    Buffer& operator=(Buffer&& other) noexcept;

    std::size_t size() const { return size_; }
    /// What a kernel gets as a pointer; a host address too.
    std::uint64_t address() const { return address_; }
    /// Both wait for earlier launches. Throw if offset + size passes the end.
    void upload(const void* source, std::size_t size, std::size_t offset = 0);
    void download(void* destination, std::size_t size, std::size_t offset = 0) const;

private:
    std::uint64_t address_ = 0;
    std::size_t size_ = 0;
};

/// A PTX module, loaded and placed. Kernels are compiled when they are first launched, per block
/// shape.
class PTARMIGAN_API Module {
public:
    /// Throws Error with all diagnostics (name:line:col: error: text). `name` is for messages.
    explicit Module(std::string ptx, std::string name = "<ptx>");
    ~Module();
    Module(Module&&) noexcept;
    Module& operator=(Module&&) noexcept;

    std::vector<std::string> kernels() const;
    /// Starts a grid; launches run one after the other. Throws for what can be checked before it
    /// runs, also when a form that the kernel uses is not supported; faults of the kernel come from
    /// synchronize().
    void launch(const std::string& kernel, Extents grid, Extents block, std::initializer_list<Argument> arguments,
                std::uint32_t dynamic_shared = 0);
    /// Address and size of a .global or .const variable.
    std::pair<std::uint64_t, std::size_t> variable(const std::string& name) const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Waits for all launches and prints what kernels printed. Throws Error if one faulted; what() is
/// the report.
PTARMIGAN_API void synchronize();

} // namespace ptarmigan
