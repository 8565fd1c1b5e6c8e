// SPDX-License-Identifier: Apache-2.0
// The driver's operations on memory, one function each: allocation, copies, fills, queries, pools.
// Checks are those of the NVIDIA driver (facts measured on an H200): ranges are checked at the
// call, with invalid_value and no sticky error.
#pragma once

#include "runtime/base/status.h"
#include "runtime/memory/address_space.h"
#include "runtime/memory/pool.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace ptarmigan::runtime {

class Context;
class Stream;

/// cuMemAlloc, in bytes. out_of_memory where the device's memory is spent (what pools keep unused is given up first).
Status memory_allocate(Context& context, std::size_t size, DevicePointer& pointer);
/// Pitch is a multiple of 512. element_size must be 4, 8 or 16.
Status memory_allocate_pitch(Context& context, std::size_t width, std::size_t height, unsigned element_size,
                             DevicePointer& pointer, std::size_t& pitch);
/// cuMemFree: waits for the context's work first. 0 is fine.
Status memory_free(Context& context, DevicePointer pointer);
/// In bytes; free: what no allocation of the device has, whatever the host has left.
Status memory_info(Context& context, std::size_t& free, std::size_t& total);
/// The allocation around `pointer`; not_found otherwise.
Status memory_address_range(DevicePointer pointer, DevicePointer& base, std::size_t& size);

/// flags: 1 portable, 2 device map, 4 write combined. 0 bytes: success and null.
Status host_allocate(Context& context, std::size_t size, unsigned flags, void*& pointer);
/// Waits for the context's work first. Null is fine; invalid_value for what host_allocate() did not give.
Status host_free(Context& context, void* pointer);
/// Memory of the program's own, which it keeps. flags: as above, or 8 read only. invalid_value unless all of it is
/// mapped and may be accessed so.
Status host_register(Context& context, void* pointer, std::size_t size, unsigned flags);
/// Waits for the context's work first. `pointer`: as it was registered.
Status host_unregister(Context& context, void* pointer);
/// Both for memory of host_allocate() or host_register(), at any place inside; invalid_value for other.
Status host_device_pointer(void* host, unsigned flags, DevicePointer& pointer);
Status host_flags(void* host, unsigned& flags);
/// flags: 1 attach global, 2 attach host.
Status managed_allocate(Context& context, std::size_t size, unsigned flags, DevicePointer& pointer);

/// What a side of a copy may be: `host` takes any address, `device` must lie inside a known
/// allocation, `unified` is what cuMemcpy takes: known allocations are checked, others are host
/// memory.
enum class Side : std::uint8_t { host, device, unified };

/// Whose memory a copy may use. Memory of cuMemAlloc is any copy's; what has its access from cuMemSetAccess or
/// cuMemPoolSetAccess only if the device has it.
enum class Reach : std::uint8_t {
    of_caller,       ///< the device of the calling thread's context
    between_contexts ///< the call names them (cuMemcpyPeer): any
};

/// One-dimensional copies. `blocking` false: the asynchronous entries; pageable host memory is read
/// (or written) before the call returns, as the driver does. Size 0: success.
Status memory_copy(Stream& stream, Side to, void* destination, Side from, const void* source, std::size_t size,
                   bool blocking, Reach reach = Reach::of_caller);

/// What memory_copy() would say, without copying.
Status check_copy(Side to, const void* destination, Side from, const void* source, std::size_t size);

/// A box of bytes inside pitched memory (CUDA_MEMCPY2D and 3D without arrays).
struct CopyBox {
    struct End {
        Side side = Side::host;
        void* base = nullptr;
        std::size_t pitch = 0;  ///< 0: width_bytes
        std::size_t height = 0; ///< rows per slice; 0: height
        std::size_t x_bytes = 0, y = 0, z = 0;
        std::shared_ptr<void> array; ///< that `base` belongs to; null: none
    };
    End source, destination;
    std::size_t width_bytes = 0, height = 1, depth = 1;
};
/// Like the two above, of boxes. A box without bytes: success.
Status memory_copy(Stream& stream, const CopyBox& box, bool blocking, Reach reach = Reach::of_caller);
Status check_copy(const CopyBox& box);

/// A copy whose ranges have been checked: rows of bytes.
struct RowCopy {
    struct Rows {
        std::uint8_t* first = nullptr;
        std::size_t pitch = 0, slice = 0;
        bool pageable = false, on_device = false;
    };
    Rows source, destination;
    std::size_t width = 0, height = 0, depth = 0; ///< one of them 0: nothing
    /// invalid_value if an end is no memory of its kind, or was not given to a device (an ordinal), or the box does not
    /// fit.
    static Status lay_out(const CopyBox& box, RowCopy& copy, int device = any_device);
    void run() const;
};

/// A fill whose range has been checked.
struct RowFill {
    std::uint8_t* first = nullptr;
    std::size_t pitch = 0, row = 0, height = 0; ///< row: bytes; 0 of row or height: nothing
    unsigned element_size = 1;
    std::uint32_t value = 0;
    bool pinned = false;
    static Status lay_out(DevicePointer pointer, std::size_t pitch, unsigned element_size, std::uint32_t value,
                          std::size_t width, std::size_t height, RowFill& fill, int device = any_device);
    /// What is wrong wherever memory is: a pitch below the row, an address or a pitch that is not aligned.
    static Status check_shape(DevicePointer pointer, std::size_t pitch, unsigned element_size, std::size_t width,
                              std::size_t height);
    void run() const;
};

/// cuMemsetD*: `element_size` 1, 2 or 4; the pointer (and pitch) must be aligned to it. height 1:
/// pitch is ignored.
Status memory_fill(Stream& stream, DevicePointer pointer, std::size_t pitch, unsigned element_size, std::uint32_t value,
                   std::size_t width, std::size_t height, bool blocking);

/// cuPointerGetAttribute: writes the attribute in CUDA's own layout to `value` (at most 16 bytes).
/// invalid_value for addresses that the driver does not know and for unknown attributes.
/// `any_type`: the cuPointerGetAttributes rules, where an unknown address gives zeros.
Status pointer_attribute(int attribute, DevicePointer pointer, void* value, bool plural = false);

/// cuPointerSetAttribute of the only attribute that can be set: remembered, because every copy orders itself as it
/// asks.
Status set_sync_memops(DevicePointer pointer, bool on);

} // namespace ptarmigan::runtime
