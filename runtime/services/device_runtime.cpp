// SPDX-License-Identifier: Apache-2.0
// One handler per function, in a table in the order of frontend/ptx/device_runtime.def. Handlers touch the program's
// memory (dim3, results) outside of all locks: a bad pointer leaves by a jump.
#include "runtime/services/device_runtime.h"

#include "frontend/ptx/device_runtime.h"
#include "runtime/base/log.h"
#include "runtime/base/tuning.h"
#include "runtime/code/fault.h"
#include "runtime/context/context.h"
#include "runtime/device/device.h"
#include "runtime/launch/child_work.h"
#include "runtime/launch/conditional_value.h"
#include "runtime/launch/grid.h"
#include "runtime/launch/occupancy.h"
#include "runtime/launch/worker.h"
#include "runtime/memory/address_space.h"
#include "runtime/module/late_functions.h"
#include "runtime/module/module.h"
#include "runtime/services/cuda_errors.h"
#include "runtime/services/device_heap.h"
#include "translator/late_call.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

namespace ptarmigan::runtime {
namespace {

/// A call by one thread.
struct Call {
    abi::CtaContext* cta;
    std::uint32_t step, lane;
    Grid& grid;
    std::uint64_t thread; ///< through the grid
    const std::uint64_t* arguments;

    template <typename T> T* pointer(unsigned index) const { return reinterpret_cast<T*>(arguments[index]); }
    std::uint32_t number(unsigned index) const { return static_cast<std::uint32_t>(arguments[index]); }
    ChildWork& children() const { return child_work_of(grid); }
    /// Returns the code, and keeps it as the thread's last error.
    std::uint64_t result(int error) const {
        if (error != ChildWork::success) children().set_error(thread, error);
        return static_cast<std::uint32_t>(error);
    }
    std::uint64_t result(Status status) const { return result(runtime_error(status)); }
};

using Handler = std::uint64_t (*)(const Call&);

// --- launches ----------------------------------------------------------------------------------------------------

/// The kernel whose address a program holds; null if it is none of this module.
Function* find_kernel(const Grid& grid, std::uint64_t address) {
    if (!grid.module) return nullptr;
    const ptx::Module& module = grid.module->source().module();
    const std::uint64_t id = address / 16 - 1;
    if (address % 16 != 0 || id >= module.functions.size()) return nullptr;
    return grid.module->find_function(module.functions[id].name).get();
}

int launch_error(Status status) {
    return status == Status::invalid_value ? ChildWork::invalid_configuration : runtime_error(status);
}

/// Does not return: the H200 ends a grid that launches what is no parameter buffer.
[[noreturn]] void bad_buffer(const Call& call, unsigned argument) {
    FaultRecord record;
    record.fault = abi::Fault::illegal_address;
    record.cta = call.cta;
    record.step = call.step;
    record.lanes = std::uint64_t{1} << call.lane;
    record.address = static_cast<std::uintptr_t>(call.arguments[argument]);
    record.has_address = true;
    raise_fault(record);
}

/// Grid, block and dynamic shared memory, from argument `first` on.
void read_config(const Call& call, unsigned first, LaunchConfig& config) {
    std::array<std::uint32_t, 3> extents{};
    std::memcpy(extents.data(), call.pointer<void>(first), sizeof extents);
    config.grid = extents;
    std::memcpy(extents.data(), call.pointer<void>(first + 1), sizeof extents);
    config.block = extents;
    config.dynamic_shared = call.number(first + 2);
}

/// For its function and configuration; parameters that have been written stay.
void prepare(ChildItem& item) {
    Kernel& kernel = item.function->kernel();
    item.error = launch_error(check_launch(kernel, item.config));
    item.parameter_bytes = kernel.parameters().size;
    const std::size_t lines = item.parameter_bytes / sizeof(ParameterLine) + 1;
    if (item.parameters.size() < lines) item.parameters.resize(lines);
}

std::uint64_t GetParameterBufferV2(const Call& call) {
    auto item = std::make_unique<ChildItem>();
    item->function = find_kernel(call.grid, call.arguments[0]);
    read_config(call, 1, item->config);
    // The H200 gives a buffer for any configuration, and refuses at the launch.
    if (!item->function) {
        call.children().set_error(call.thread, cuda_error_invalid_device_function);
        return 0;
    }
    prepare(*item);
    return reinterpret_cast<std::uintptr_t>(call.children().add_buffer(std::move(item)));
}

std::uint64_t LaunchDeviceV2(const Call& call) {
    ChildWork& children = call.children();
    std::unique_ptr<ChildItem> item = children.take_buffer(call.pointer<void>(0));
    if (!item) bad_buffer(call, 0);
    return call.result(children.launch(std::move(item), call.arguments[1]));
}

/// The pair before CUDA 5: the buffer is asked for by size, and the launch says of what.
std::uint64_t GetParameterBuffer(const Call& call) {
    constexpr std::uint64_t most_bytes = 1 << 20; // an H100 refused none; kernels take 32,764 at most
    if (call.arguments[1] > most_bytes) return 0;
    auto item = std::make_unique<ChildItem>();
    item->parameters.resize(call.arguments[1] / sizeof(ParameterLine) + 1);
    return reinterpret_cast<std::uintptr_t>(call.children().add_buffer(std::move(item)));
}

std::uint64_t LaunchDevice(const Call& call) {
    Function* function = find_kernel(call.grid, call.arguments[0]);
    LaunchConfig config;
    read_config(call, 2, config);
    ChildWork& children = call.children();
    std::unique_ptr<ChildItem> item = children.take_buffer(call.pointer<void>(1));
    if (!item) bad_buffer(call, 1);
    if (!function) return call.result(cuda_error_invalid_device_function);
    item->function = function;
    item->config = config;
    prepare(*item);
    return call.result(children.launch(std::move(item), call.arguments[5]));
}

// --- errors ------------------------------------------------------------------------------------------------------

std::uint64_t GetLastError(const Call& call) {
    return static_cast<std::uint32_t>(call.children().last_error(call.thread, true));
}
std::uint64_t PeekAtLastError(const Call& call) {
    return static_cast<std::uint32_t>(call.children().last_error(call.thread, false));
}
std::uint64_t GetErrorName(const Call& call) {
    return reinterpret_cast<std::uintptr_t>(runtime_error_name(static_cast<int>(call.number(0))));
}
std::uint64_t GetErrorString(const Call& call) {
    return reinterpret_cast<std::uintptr_t>(runtime_error_text(static_cast<int>(call.number(0))));
}

/// Of whatever was the last one, and success clears it.
std::uint64_t SetLastError(const Call& call) {
    const std::uint32_t error = call.number(0);
    static_cast<void>(call.children().last_error(call.thread, true));
    call.children().set_error(call.thread, static_cast<int>(error));
    return error;
}
/// Waiting for children is no more: what a kernel calls whose author has been told so.
std::uint64_t DeviceSynchronizeDeprecationAvoidance(const Call& call) {
    return call.result(ChildWork::sync_depth_exceeded);
}

// --- streams and events: work runs in the order in which it was asked for, so there is nothing to wait for
// ------------

std::uint64_t new_handle(const Call& call, bool flags_fit) {
    if (!flags_fit) return call.result(ChildWork::invalid_value);
    const std::uint64_t handle = call.children().new_handle();
    std::memcpy(call.pointer<void>(0), &handle, sizeof handle);
    return 0;
}
std::uint64_t StreamCreateWithFlags(const Call& call) {
    return new_handle(call, call.number(1) <= 1);
}
std::uint64_t EventCreateWithFlags(const Call& call) {
    return new_handle(call, call.number(1) == 2);
}

std::uint64_t known_handle(const Call& call, std::uint64_t handle) {
    return call.result(handle >= ChildWork::first_stream ? ChildWork::success : ChildWork::invalid_resource_handle);
}
std::uint64_t StreamDestroy(const Call& call) {
    return known_handle(call, call.arguments[0]);
}
std::uint64_t EventDestroy(const Call& call) {
    return known_handle(call, call.arguments[0]);
}
std::uint64_t EventRecord(const Call& call) {
    return known_handle(call, call.arguments[0]);
}
std::uint64_t StreamWaitEvent(const Call& call) {
    return known_handle(call, call.arguments[1]);
}

// --- memory ------------------------------------------------------------------------------------------------------

std::uint64_t Malloc(const Call& call) {
    if (call.arguments[1] == 0) return call.result(ChildWork::invalid_value);
    void* block = call.grid.context->kernel_heap().allocate(call.arguments[1]);
    if (!block) return call.result(ChildWork::memory_allocation);
    std::memcpy(call.pointer<void>(0), &block, sizeof block);
    return 0;
}

std::uint64_t Free(const Call& call) {
    const KernelHeap::Freed freed = call.grid.context->kernel_heap().free(call.pointer<void>(0));
    return call.result(freed == KernelHeap::Freed::yes ? ChildWork::success : ChildWork::invalid_value);
}

/// Rows of `width` bytes. They are looked at when their turn comes: the memory may be another then.
struct Rows {
    std::uint64_t address, pitch;
    bool is_known(std::uint64_t width, std::uint64_t height) const {
        std::uint64_t span = 0;
        return !__builtin_mul_overflow(pitch, height - 1, &span) && !__builtin_add_overflow(span, width, &span) &&
               AddressSpace::get().is_known_range(address, span);
    }
    std::uint8_t* row(std::uint64_t y) const { return reinterpret_cast<std::uint8_t*>(address) + y * pitch; }
};

std::uint64_t queue(const Call& call, std::uint64_t stream, std::function<bool()> work) {
    if (!ChildWork::is_stream(stream)) return call.result(ChildWork::invalid_resource_handle);
    auto item = std::make_unique<ChildItem>();
    item->host_work = std::move(work);
    call.children().add(std::move(item), stream);
    return 0;
}

/// Of cudaMemcpyKind: from device to device, or by the addresses.
bool is_device_copy(std::uint32_t kind) {
    return kind == 3 || kind == 4;
}

std::uint64_t copy_rows(const Call& call, Rows to, Rows from, std::uint64_t width, std::uint64_t height,
                        std::uint32_t kind, std::uint64_t stream) {
    if (!is_device_copy(kind)) return call.result(cuda_error_invalid_memcpy_direction);
    if (width == 0 || height == 0) return 0;
    if (height > 1 && (to.pitch < width || from.pitch < width)) return call.result(ChildWork::invalid_value);
    return queue(call, stream, [=] {
        if (!to.is_known(width, height) || !from.is_known(width, height)) return false;
        for (std::uint64_t y = 0; y < height; ++y) std::memmove(to.row(y), from.row(y), width);
        return true;
    });
}

std::uint64_t fill_rows(const Call& call, Rows to, std::uint32_t value, std::uint64_t width, std::uint64_t height,
                        std::uint64_t stream) {
    if (width == 0 || height == 0) return 0;
    if (height > 1 && to.pitch < width) return call.result(ChildWork::invalid_value);
    return queue(call, stream, [=] {
        if (!to.is_known(width, height)) return false;
        for (std::uint64_t y = 0; y < height; ++y) std::memset(to.row(y), static_cast<int>(value), width);
        return true;
    });
}

std::uint64_t MemcpyAsync(const Call& call) {
    const std::uint64_t* a = call.arguments;
    return copy_rows(call, {a[0], 0}, {a[1], 0}, a[2], 1, call.number(3), a[4]);
}
std::uint64_t Memcpy2DAsync(const Call& call) {
    const std::uint64_t* a = call.arguments;
    return copy_rows(call, {a[0], a[1]}, {a[2], a[3]}, a[4], a[5], call.number(6), a[7]);
}
std::uint64_t MemsetAsync(const Call& call) {
    const std::uint64_t* a = call.arguments;
    return fill_rows(call, {a[0], 0}, call.number(1), a[2], 1, a[3]);
}
std::uint64_t Memset2DAsync(const Call& call) {
    const std::uint64_t* a = call.arguments;
    return fill_rows(call, {a[0], a[1]}, call.number(2), a[3], a[4], a[5]);
}

/// cudaPitchedPtr: slices of `rows` rows.
struct Slices {
    std::uint64_t address, pitch, row_bytes, rows;
    /// True if an extent of several rows or slices fits.
    bool holds(const std::array<std::uint64_t, 3>& extent) const {
        const auto [width, height, depth] = extent;
        return (height * depth <= 1 || pitch >= width) && (depth <= 1 || rows >= height);
    }
    Rows slice(std::uint64_t z) const { return {address + z * pitch * rows, pitch}; }
    Slices from(const std::array<std::uint64_t, 3>& position) const {
        return {address + (position[2] * rows + position[1]) * pitch + position[0], pitch, row_bytes, rows};
    }
};
using Extent = std::array<std::uint64_t, 3>; ///< cudaExtent, cudaPos

bool is_empty(const Extent& extent) {
    return extent[0] == 0 || extent[1] == 0 || extent[2] == 0;
}

template <typename T> T read_structure(const Call& call, unsigned index) {
    T value{};
    std::memcpy(&value, call.pointer<void>(index), sizeof value);
    return value;
}

std::uint64_t Memset3DAsync(const Call& call) {
    const auto to = read_structure<Slices>(call, 0);
    const auto extent = read_structure<Extent>(call, 2);
    if (is_empty(extent)) return 0;
    if (to.address == 0 || !to.holds(extent)) return call.result(ChildWork::invalid_value);
    const auto value = static_cast<int>(call.number(1));
    return queue(call, call.arguments[3], [=] {
        const auto [width, height, depth] = extent;
        for (std::uint64_t z = 0; z < depth; ++z) {
            const Rows rows = to.slice(z);
            if (!rows.is_known(width, height)) return false;
            for (std::uint64_t y = 0; y < height; ++y) std::memset(rows.row(y), value, width);
        }
        return true;
    });
}

/// cudaMemcpy3DParms.
struct CopyOfSlices {
    std::uint64_t from_array;
    Extent from_position;
    Slices from;
    std::uint64_t to_array;
    Extent to_position;
    Slices to;
    Extent extent;
    std::uint32_t kind;
};

std::uint64_t Memcpy3DAsync(const Call& call) {
    const auto copy = read_structure<CopyOfSlices>(call, 0);
    if (copy.from_array != 0 || copy.to_array != 0) return call.result(ChildWork::invalid_value);
    if (!is_device_copy(copy.kind)) return call.result(cuda_error_invalid_memcpy_direction);
    if (is_empty(copy.extent)) return 0;
    if (copy.from.address == 0 || copy.to.address == 0) return call.result(ChildWork::invalid_value);
    if (!copy.from.holds(copy.extent) || !copy.to.holds(copy.extent)) return call.result(ChildWork::invalid_pitch);
    const Slices from = copy.from.from(copy.from_position), to = copy.to.from(copy.to_position);
    return queue(call, call.arguments[1], [from, to, extent = copy.extent] {
        const auto [width, height, depth] = extent;
        for (std::uint64_t z = 0; z < depth; ++z) {
            const Rows source = from.slice(z), target = to.slice(z);
            if (!source.is_known(width, height) || !target.is_known(width, height)) return false;
            for (std::uint64_t y = 0; y < height; ++y) std::memmove(target.row(y), source.row(y), width);
        }
        return true;
    });
}

// --- questions ---------------------------------------------------------------------------------------------------

std::uint64_t answer(const Call& call, unsigned index, std::optional<int> value) {
    if (!value) return call.result(ChildWork::invalid_value);
    std::memcpy(call.pointer<void>(index), &*value, sizeof *value);
    return 0;
}
std::uint64_t GetDevice(const Call& call) {
    return answer(call, 0, 0);
}
std::uint64_t GetDeviceCount(const Call& call) {
    return answer(call, 0, 1);
}
std::uint64_t RuntimeGetVersion(const Call& call) {
    return answer(call, 0, 6000);
} // what CUDA 13.0's says
std::uint64_t DeviceGetAttribute(const Call& call) {
    if (call.number(2) != 0) return call.result(cuda_error_invalid_device);
    const int id = static_cast<int>(call.number(1));
    return answer(call, 0, id == 0 ? 0 : Device::get().attribute(id));
}

std::uint64_t DeviceGetLimit(const Call& call) {
    std::size_t value = 0;
    const Status status = call.grid.context->limit(static_cast<Limit>(call.number(1)), value);
    if (status != Status::success) value = SIZE_MAX;
    std::memcpy(call.pointer<void>(0), &value, sizeof value);
    return static_cast<std::uint32_t>(runtime_error(status)); // it does not become the last error
}

std::uint64_t DeviceGetCacheConfig(const Call& call) {
    return answer(call, 0, call.grid.context->cache_config());
}

std::uint64_t DeviceGetSharedMemConfig(const Call& call) {
    constexpr int four_byte_banks = 1;
    if (call.arguments[0] == 0) return call.result(ChildWork::invalid_value);
    return answer(call, 0, four_byte_banks);
}

/// What the device runtime writes of cudaFuncAttributes: its beginning, before CUDA 9.
struct FunctionAttributes {
    std::size_t shared, constant, local;
    int max_threads, registers, ptx_version, binary_version;
};

std::uint64_t FuncGetAttributes(const Call& call) {
    Function* function = find_kernel(call.grid, call.arguments[1]);
    if (!function) return call.result(cuda_error_invalid_device_function);
    std::array<int, 7> values{};
    for (int id = 0; id < 7; ++id)
        if (const Status status = function->kernel().attribute(id, values[static_cast<std::size_t>(id)]);
            status != Status::success)
            return call.result(status);
    const FunctionAttributes attributes{static_cast<std::size_t>(values[1]),
                                        static_cast<std::size_t>(values[2]),
                                        static_cast<std::size_t>(values[3]),
                                        values[0],
                                        values[4],
                                        values[5],
                                        values[6]};
    std::memcpy(call.pointer<void>(0), &attributes, sizeof attributes);
    return 0;
}

std::uint64_t OccupancyMaxActiveBlocksPerMultiprocessor(const Call& call) {
    Function* function = find_kernel(call.grid, call.arguments[1]);
    if (!function) return call.result(cuda_error_invalid_device_function);
    int blocks = 0;
    const Status status =
        occupancy_blocks(function->kernel(), static_cast<int>(call.number(2)), call.arguments[3], blocks);
    return status == Status::success ? answer(call, 0, blocks) : call.result(status);
}
std::uint64_t OccupancyMaxActiveBlocksPerMultiprocessorWithFlags(const Call& call) {
    return OccupancyMaxActiveBlocksPerMultiprocessor(call);
}

// --- graphs ------------------------------------------------------------------------------------------------------

std::uint64_t GraphSetConditional(const Call& call) {
    if (const auto value = ConditionalValue::find(call.arguments[0])) value->set(call.number(1));
    return 0; // it has no result
}
std::uint64_t GraphLaunch(const Call& call) {
    const auto launch = device_graph_launch.load(std::memory_order_acquire);
    return call.result(launch ? launch(call.grid, call.arguments[0], call.arguments[1]) : ChildWork::invalid_value);
}

constexpr Handler handlers[] = {
#define DEVICE_RUNTIME(name) name,
#include "frontend/ptx/device_runtime.def"
#undef DEVICE_RUNTIME
};

/// Code for a function that is called late, null (and why on stderr) if there is none.
const LoadedKernel* find_late_function(const Worker& worker, ptx::FunctionId function) {
    const Grid& grid = worker.grid();
    const LoadedKernel& code = worker.code();
    const std::size_t whole = &code == grid.code.get() ? grid.fiber_stack : grid.good->fiber_stack;
    const std::size_t taken = code.stack_bytes + tuning::service_stack;
    std::string error;
    const LoadedKernel* found = late_function(code, function, whole > taken ? whole - taken : 0, error);
    if (!found) log(LogLevel::error, error);
    return found;
}

std::uint64_t late_code(abi::CtaContext* cta, std::uint32_t step, std::uint32_t lane, const std::uint64_t* arguments) {
    const Worker& worker = *static_cast<Worker*>(cta->worker);
    if (const LoadedKernel* function = find_late_function(worker, static_cast<ptx::FunctionId>(arguments[0])))
        return reinterpret_cast<std::uintptr_t>(function->entry);
    FaultRecord record;
    record.fault = abi::Fault::invalid_call_target;
    record.cta = cta;
    record.step = step;
    record.lanes = std::uint64_t{1} << lane;
    record.line = static_cast<std::uint32_t>(arguments[1]);
    raise_fault(record);
}

} // namespace

std::uint64_t device_runtime(abi::CtaContext* cta, std::uint32_t step, std::uint32_t lane, std::uint32_t function,
                             const std::uint64_t* arguments) {
    if (function == abi::late_function_call) return late_code(cta, step, lane, arguments);
    const Worker& worker = *static_cast<Worker*>(cta->worker);
    Grid& grid = worker.grid();
    const std::uint64_t threads = std::uint64_t{cta->ntid[0]} * cta->ntid[1] * cta->ntid[2];
    const std::uint64_t thread =
        cta->linear_ctaid * threads + std::uint64_t{step} * worker.code().properties.lane_width + lane;
    return handlers[function](Call{cta, step, lane, grid, thread, arguments});
}

} // namespace ptarmigan::runtime
