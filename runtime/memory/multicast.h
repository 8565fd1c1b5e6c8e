// SPDX-License-Identifier: Apache-2.0
// Multicast objects: memory of several devices that instructions of `multimem` use at one address (PTX manual
// 9.7.9.14). The address itself is inaccessible; what is bound there is mapped once more, where those instructions find
// it.
#pragma once

#include "runtime/base/status.h"
#include "runtime/device/device.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <vector>

namespace ptarmigan::runtime {

/// What stands behind a multicast address: one place for each device of the team.
struct MulticastPlaces {
    std::array<std::uint8_t*, Device::most> at;
    unsigned count = 0;
};

/// cuMulticastCreate. Thread-safe. Offsets and sizes that are no multiples of 2 MiB are invalid_value.
class MulticastTeam {
public:
    MulticastTeam(unsigned devices, std::size_t size) : wanted_(devices), size_(size) {}
    ~MulticastTeam();
    MulticastTeam(const MulticastTeam&) = delete;
    MulticastTeam& operator=(const MulticastTeam&) = delete;

    std::size_t size() const { return size_; }
    /// invalid_value for one that is in it, or too many.
    Status add_device(int device);
    bool has(int device) const;
    /// All devices have been added: memory may be bound and addresses mapped.
    bool is_complete() const;
    /// Binds a part of a file (base/shared_pages) as a device's memory; invalid_value where some is bound already.
    Status bind(int device, std::size_t offset, std::size_t size, int file, std::size_t file_offset);
    /// Takes away what is bound in a range, each as a whole.
    Status unbind(int device, std::size_t offset, std::size_t size);
    /// False unless memory of every device is bound to all of the range.
    bool find(std::size_t offset, std::size_t size, MulticastPlaces& places) const;

private:
    struct Binding {
        std::size_t size = 0;
        std::uintptr_t mapped = 0;
    };
    struct Member {
        int device = 0;
        std::map<std::size_t, Binding> bindings; ///< by offset
    };
    const Member* member(int device) const;

    const unsigned wanted_;
    const std::size_t size_;
    mutable std::shared_mutex mutex_;
    std::vector<Member> members_;
};

/// Which addresses are multicast ones. One of the process. Thread-safe; its mutex comes before the teams'.
class MulticastMaps {
public:
    static MulticastMaps& get();
    /// `offset`: in the team, of the map's first byte.
    void add(std::uintptr_t address, std::size_t size, std::shared_ptr<MulticastTeam> team, std::size_t offset);
    /// Whether any device may use the map at `address`.
    void set_access(std::uintptr_t address, bool allowed);
    void remove(std::uintptr_t address);
    /// False unless kernels may use all of the range and it is bound everywhere. What was found stays as long as the
    /// kernel may run: unbinding waits for it.
    bool find(std::uintptr_t address, std::size_t size, MulticastPlaces& places) const;

private:
    struct Map {
        std::size_t size = 0;
        std::shared_ptr<MulticastTeam> team;
        std::size_t offset = 0;
        bool allowed = false;
    };
    mutable std::shared_mutex mutex_;
    std::map<std::uintptr_t, Map> maps_;
};

} // namespace ptarmigan::runtime
