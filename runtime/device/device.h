// SPDX-License-Identifier: Apache-2.0
// The devices of the process: the host's CPUs, described as an H200 except where that would be a lie, as often as
// PTARMIGAN_DEVICES says. They share the CPUs; what each has of its own is an identity and a part of the memory.
#pragma once

#include "runtime/base/status.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ptarmigan::runtime {

/// Constant after its first use. Thread-safe.
class Device {
public:
    /// How many devices there can be.
    static constexpr int most = 16;

    /// cuInit's work: reads PTARMIGAN_* and CUDA_VISIBLE_DEVICES. no_device or invalid_device as
    /// find_visible_devices() says. Once it has succeeded, later calls change nothing.
    static Status initialize();
    /// True once initialize() has succeeded. Lock-free.
    static bool initialized();
    /// Number of devices that the process sees; before initialize() has succeeded, that it would see.
    static int count();
    /// Number of devices that there are, seen or not (PTARMIGAN_DEVICES).
    static int number_of_devices();
    /// The device that the process sees as `ordinal`, below count(). What all devices have in common is asked of
    /// get(). initialize() need not have been called (the tool's `info`), but usually was: before that, and where
    /// there is no such ordinal, the numbers are those of the devices that there are.
    static Device& get(int ordinal = 0);
    /// The device with number `number`, below number_of_devices(), whether the process sees it or not.
    static Device& numbered(int number);

    /// Which of the devices that there are.
    int number() const { return number_; }
    const std::string& name() const { return name_; }
    std::size_t total_memory() const { return total_memory_; }
    const std::array<std::uint8_t, 16>& uuid() const { return uuid_; }
    const std::string& pci_bus_id() const { return pci_bus_id_; }
    /// 90 for compute capability 9.0.
    unsigned compute_capability() const { return compute_capability_; }
    /// Threads that run CTAs of one grid.
    unsigned workers() const { return workers_; }
    /// Multiprocessors that the device claims (PTARMIGAN_SMS), whatever threads there are: programs size grids by it.
    unsigned multiprocessors() const { return multiprocessors_; }
    /// CUdevice_attribute `id`; nothing for ids that CUDA 13.5 does not know.
    std::optional<int> attribute(int id) const;

private:
    explicit Device(int number);

    const int number_;
    std::string name_;
    std::string pci_bus_id_;
    std::size_t total_memory_ = 0;
    std::array<std::uint8_t, 16> uuid_{};
    unsigned compute_capability_ = 90;
    unsigned workers_ = 1;
    unsigned multiprocessors_ = 1;
    int clock_khz_ = 0;
    int l2_bytes_ = 0;
};

/// How many multiprocessors each group (GPC) of a device of so many has: an H100's of 132, else groups of 16.
std::vector<unsigned> multiprocessor_groups(unsigned multiprocessors);

/// Number and CUDA name of attribute `index` of the table, for reports; false past the end.
bool device_attribute_row(std::size_t index, int& id, const char*& name);

} // namespace ptarmigan::runtime
