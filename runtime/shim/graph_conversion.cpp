// SPDX-License-Identifier: Apache-2.0
#include "runtime/shim/graph_conversion.h"

#include "runtime/graph/graph_memory.h"
#include "runtime/graph/program.h"
#include "runtime/shim/copy_ends.h"
#include "runtime/shim/kernel_attributes.h"
#include "runtime/shim/value_steps.h"

#include <algorithm>
#include <cstring>

namespace ptarmigan::shim {
namespace {

/// The context that a structure names, or the current one.
Status context_of(CUcontext given, runtime::Context*& context) {
    if (!given) return runtime::usable_context(context);
    const auto found = find_handle<runtime::Context>(given);
    if (!found) return Status::invalid_context;
    context = found.get(); // contexts are never freed
    return context->status();
}

} // namespace

Status make_work(const CUDA_KERNEL_NODE_PARAMS& given, runtime::KernelWork& work) {
    if (!given.func && !given.kern) return Status::invalid_handle; // the kernel counts without a function only
    std::shared_ptr<runtime::Function> function;
    if (given.func) function = find_handle<runtime::Function>(given.func);
    if (!function) {
        runtime::Context* context = nullptr;
        Status status = context_of(given.ctx, context);
        if (status == Status::success)
            status = find_function(given.func ? static_cast<const void*>(given.func) : given.kern, *context, function);
        if (status != Status::success) return status;
        if (!given.func) work.library_kernel = given.kern;
    }
    work.function = function.get();
    work.module = function->module().shared_from_this();
    work.config.grid = {given.gridDimX, given.gridDimY, given.gridDimZ};
    work.config.block = {given.blockDimX, given.blockDimY, given.blockDimZ};
    work.config.dynamic_shared = given.sharedMemBytes;
    if (const Status status = runtime::check_kernel(work); status != Status::success) return status;
    work.packed = !given.kernelParams && given.extra;
    void** extra = given.kernelParams ? nullptr : given.extra;
    return runtime::pack_launch_parameters(function->kernel(), given.kernelParams, extra, work.parameters);
}

CUDA_KERNEL_NODE_PARAMS parameters_of(const runtime::KernelWork& work) {
    CUDA_KERNEL_NODE_PARAMS given{};
    if (work.library_kernel)
        given.kern = static_cast<CUkernel>(const_cast<void*>(work.library_kernel));
    else
        given.func = reinterpret_cast<CUfunction>(work.function);
    given.ctx = reinterpret_cast<CUcontext>(&work.context());
    given.gridDimX = work.config.grid[0], given.gridDimY = work.config.grid[1], given.gridDimZ = work.config.grid[2];
    given.blockDimX = work.config.block[0], given.blockDimY = work.config.block[1],
    given.blockDimZ = work.config.block[2];
    given.sharedMemBytes = work.config.dynamic_shared;
    const auto& offsets = work.function->kernel().parameters().offsets;
    work.pointers.clear();
    if (work.packed) {
        work.size = work.function->kernel().parameters().size;
        work.pointers = {reinterpret_cast<void*>(1), const_cast<std::uint8_t*>(work.parameters.data()),
                         reinterpret_cast<void*>(2), &work.size, nullptr};
        given.extra = work.pointers.data();
        return given;
    }
    for (std::size_t i = 0; i < work.function->kernel().given_parameters(); ++i)
        work.pointers.push_back(const_cast<std::uint8_t*>(work.parameters.data()) + offsets[i]);
    if (!work.pointers.empty()) given.kernelParams = work.pointers.data();
    return given;
}

Status make_work(const CUDA_MEMCPY3D& given, CUcontext context, runtime::CopyWork& work) {
    if (given.WidthInBytes == 0 || given.Height == 0 || given.Depth == 0) return Status::invalid_value;
    if (const Status status = context_of(context, work.context); status != Status::success) return status;
    runtime::CopyBox& box = work.box;
    box.width_bytes = given.WidthInBytes, box.height = given.Height, box.depth = given.Depth;
    const Status status = make_ends(source_of(given), destination_of(given), box);
    if (status != Status::success) return status;
    work.memory_types = {given.srcMemoryType, given.dstMemoryType};
    work.arrays = {box.source.array, box.destination.array};
    runtime::RowCopy laid;
    return runtime::RowCopy::lay_out(box, laid);
}

CUDA_MEMCPY3D parameters_of(const runtime::CopyWork& work) {
    CUDA_MEMCPY3D given{};
    const runtime::CopyBox& box = work.box;
    given.WidthInBytes = box.width_bytes, given.Height = box.height, given.Depth = box.depth;
    const auto type = [&](const runtime::CopyBox::End& end, unsigned as_given) -> unsigned {
        if (as_given) return as_given;
        return end.array ? memory_array : end.side == runtime::Side::host ? memory_host : memory_device;
    };
    given.srcMemoryType = type(box.source, work.memory_types[0]);
    given.dstMemoryType = type(box.destination, work.memory_types[1]);
    given.srcXInBytes = box.source.x_bytes, given.srcY = box.source.y, given.srcZ = box.source.z;
    given.dstXInBytes = box.destination.x_bytes, given.dstY = box.destination.y, given.dstZ = box.destination.z;
    if (given.srcMemoryType == memory_array) {
        given.srcArray = static_cast<CUarray>(box.source.array.get());
    } else {
        given.srcPitch = box.source.pitch, given.srcHeight = box.source.height;
        if (given.srcMemoryType == memory_host)
            given.srcHost = box.source.base;
        else
            given.srcDevice = reinterpret_cast<CUdeviceptr>(box.source.base);
    }
    if (given.dstMemoryType == memory_array) {
        given.dstArray = static_cast<CUarray>(box.destination.array.get());
    } else {
        given.dstPitch = box.destination.pitch, given.dstHeight = box.destination.height;
        if (given.dstMemoryType == memory_host)
            given.dstHost = box.destination.base;
        else
            given.dstDevice = reinterpret_cast<CUdeviceptr>(box.destination.base);
    }
    return given;
}

Status make_work(const CUDA_MEMSET_NODE_PARAMS& given, CUcontext context, runtime::FillWork& work) {
    if (const Status status = context_of(context, work.context); status != Status::success) return status;
    work.to = given.dst, work.pitch = given.pitch, work.width = given.width, work.height = given.height;
    work.element_size = given.elementSize, work.value = given.value;
    runtime::RowFill laid;
    const Status status =
        runtime::RowFill::lay_out(work.to, work.pitch, work.element_size, work.value, work.width, work.height, laid);
    if (status == Status::success && !laid.first) return Status::invalid_value;
    return status;
}

CUDA_MEMSET_NODE_PARAMS parameters_of(const runtime::FillWork& work) {
    return {work.to, work.pitch, work.value, work.element_size, work.width, work.height};
}

Status make_work(const CUDA_HOST_NODE_PARAMS& given, runtime::HostWork& work) {
    if (!given.fn) return Status::invalid_value;
    work = {given.fn, given.userData};
    return Status::success;
}

CUDA_HOST_NODE_PARAMS parameters_of(const runtime::HostWork& work) {
    return {work.function, work.data};
}

Status make_work(const CUDA_BATCH_MEM_OP_NODE_PARAMS& given, runtime::MemoryOperationsWork& work) {
    if (given.flags != 0 || !given.ctx || (given.count != 0 && !given.paramArray)) return Status::invalid_value;
    if (const Status status = context_of(given.ctx, work.context); status != Status::success) return status;
    for (unsigned i = 0; i < given.count; ++i) {
        runtime::ValueStep step;
        const Status status = make_value_step(given.paramArray[i], step);
        // Memory that is none yet is looked at when the node runs.
        const bool unknown = status == Status::invalid_value && step.kind != runtime::ValueStep::Kind::barrier &&
                             step.address % step.bytes == 0 &&
                             !runtime::AddressSpace::get().is_known_range(step.address, step.bytes);
        if (status != Status::success && !unknown) return status;
        work.steps.push_back(step);
    }
    return Status::success;
}

CUDA_BATCH_MEM_OP_NODE_PARAMS parameters_of(const runtime::MemoryOperationsWork& work) {
    using Kind = runtime::ValueStep::Kind;
    constexpr int wait_32 = 1, write_32 = 2, wait_64 = 4, write_64 = 5, barrier = 6;
    static_assert(sizeof(CUstreamBatchMemOpParams) == sizeof work.given[0]);
    work.given.clear();
    for (const runtime::ValueStep& step : work.steps) {
        CUstreamBatchMemOpParams given{};
        const bool wide = step.bytes == 8;
        if (step.kind == Kind::barrier)
            given.barrier = {barrier, 0};
        else if (step.kind == Kind::wait)
            given.value = {wide ? wait_64 : wait_32, step.address, step.value, static_cast<unsigned>(step.until), 0};
        else
            given.value = {wide ? write_64 : write_32, step.address, step.value, 0, 0};
        std::memcpy(work.given.emplace_back().data(), &given, sizeof given);
    }
    auto* list = reinterpret_cast<CUstreamBatchMemOpParams*>(work.given.data());
    return {reinterpret_cast<CUcontext>(work.context), static_cast<unsigned>(work.steps.size()), list, 0};
}

Status make_work(const CUDA_EXT_SEM_NODE_PARAMS& given, runtime::SemaphoreWork& work) {
    if (given.numExtSems == 0 || !given.extSemArray || !given.paramsArray) return Status::invalid_value;
    for (unsigned i = 0; i < given.numExtSems; ++i) {
        auto semaphore = find_handle<runtime::ExternalSemaphore>(given.extSemArray[i]);
        if (!semaphore) return Status::invalid_handle;
        const CUDA_EXTERNAL_SEMAPHORE_PARAMS& parameters = given.paramsArray[i];
        if (parameters.flags != 0) return Status::invalid_value;
        work.semaphores.emplace_back(std::move(semaphore), parameters.params.fence.value);
    }
    return Status::success;
}

CUDA_EXT_SEM_NODE_PARAMS parameters_of(const runtime::SemaphoreWork& work) {
    static_assert(sizeof(CUDA_EXTERNAL_SEMAPHORE_PARAMS) == sizeof work.parameters[0]);
    work.handles.clear();
    work.parameters.clear();
    for (const auto& [semaphore, value] : work.semaphores) {
        CUDA_EXTERNAL_SEMAPHORE_PARAMS parameters{};
        parameters.params.fence.value = value;
        work.handles.push_back(semaphore.get());
        std::memcpy(work.parameters.emplace_back().data(), &parameters, sizeof parameters);
    }
    return {reinterpret_cast<CUexternalSemaphore*>(work.handles.data()),
            reinterpret_cast<const CUDA_EXTERNAL_SEMAPHORE_PARAMS*>(work.parameters.data()),
            static_cast<unsigned>(work.semaphores.size())};
}

Status make_work(CUDA_MEM_ALLOC_NODE_PARAMS& given, runtime::AllocateWork& work) {
    if (given.bytesize == 0) return Status::invalid_value;
    if (given.poolProps.handleTypes != 0) return Status::not_supported;
    if (given.accessDescCount && !given.accessDescs) return Status::invalid_value;
    runtime::Context* context = nullptr;
    if (const Status status = runtime::usable_context(context); status != Status::success) return status;
    const runtime::MemoryPlace place{given.poolProps.location.type, given.poolProps.location.id};
    constexpr int pinned = 1, managed = 2;
    const int type = given.poolProps.allocType;
    if (type != pinned && type != managed) return Status::invalid_value;
    if (place.type == runtime::MemoryPlace::host || place.type == runtime::MemoryPlace::host_numa ||
        (type == managed && place.type != runtime::MemoryPlace::device))
        return Status::not_supported;
    if (place.type != runtime::MemoryPlace::device || place.id < 0 || place.id >= runtime::Device::count())
        return Status::invalid_value;
    work.place = place;
    work.allocation_type = type;
    for (std::size_t i = 0; i < given.accessDescCount; ++i) {
        const CUmemAccessDesc& access = given.accessDescs[i];
        work.access.push_back({access.location.type, access.location.id, access.flags});
    }
    const runtime::MemoryKind kind = type == managed ? runtime::MemoryKind::managed : runtime::MemoryKind::pool;
    const Status status = runtime::GraphMemory::create(*context, kind, given.bytesize, work.memory, place.id);
    if (status == Status::success) given.dptr = work.memory->pointer();
    return status;
}

CUDA_MEM_ALLOC_NODE_PARAMS parameters_of(const runtime::AllocateWork& work) {
    CUDA_MEM_ALLOC_NODE_PARAMS given{};
    given.poolProps.allocType = work.allocation_type;
    given.poolProps.location = {work.place.type, work.place.id};
    static_assert(sizeof(CUmemAccessDesc) == sizeof work.access[0]);
    given.accessDescs = reinterpret_cast<const CUmemAccessDesc*>(work.access.data());
    given.accessDescCount = work.access.size();
    given.bytesize = work.memory->size();
    given.dptr = work.memory->pointer();
    return given;
}

Status make_work(const CUDA_MEM_FREE_NODE_PARAMS& given, runtime::FreeWork& work) {
    work.memory = runtime::GraphMemory::find(given.dptr);
    return work.memory ? Status::success : Status::invalid_value;
}

Status make_child_work(const CUDA_CHILD_GRAPH_NODE_PARAMS& given, runtime::Graph& parent, NodeWork& work) {
    constexpr int clone = 0, move = 1;
    using Owner = runtime::Graph::Owner;
    const auto child = find_handle<runtime::Graph>(given.graph);
    if (!child || child.get() == &parent) return Status::invalid_value; // the driver crashes at the second
    if (child->owner() != Owner::program || child->has_conditional_nodes()) return Status::not_supported;
    if (given.ownership != clone && given.ownership != move) return Status::invalid_value;
    auto& made = work.emplace<runtime::ChildWorkOfGraph>();
    if (given.ownership == move) {
        for (const runtime::Graph* above = &parent; above; above = above->parent())
            if (above == child.get()) return Status::invalid_value;
        made.graph = child;
        child->set_owner(Owner::moved_child, &parent);
        return Status::success;
    }
    if (child->has_memory_nodes()) return Status::not_supported;
    made.graph = child->clone(Owner::child_node);
    made.graph->set_owner(Owner::child_node, &parent);
    return Status::success;
}

Status make_event_work(CUevent handle, runtime::NodeType type, NodeWork& work) {
    const auto event = find_handle<runtime::Event>(handle);
    if (!event) return handle ? Status::invalid_handle : Status::invalid_value;
    if (type == runtime::NodeType::event_wait)
        work = runtime::EventWaitWork{event};
    else
        work = runtime::EventRecordWork{event};
    return Status::success;
}

namespace {

Status make_conditional(CUDA_CONDITIONAL_NODE_PARAMS& given, runtime::Graph& parent, NodeWork& work) {
    auto value = runtime::ConditionalValue::find(given.handle);
    bool known = false; // to the graph, or to one that it is inside of
    for (const runtime::Graph* above = &parent; above; above = above->parent()) {
        const auto& values = above->conditional_values;
        known = known || std::find(values.begin(), values.end(), value) != values.end();
    }
    if (!value || value->used || !known) return Status::invalid_value;
    constexpr unsigned most_of_if = 2;
    const bool is_if = given.type == 0, is_while = given.type == 1;
    if (given.type < 0 || given.type > 2 || given.size == 0) return Status::invalid_value;
    if ((is_if && given.size > most_of_if) || (is_while && given.size != 1)) return Status::invalid_value;
    runtime::Context* context = nullptr;
    if (!given.ctx) return Status::invalid_context;
    if (const Status status = context_of(given.ctx, context); status != Status::success) return status;
    auto& made = work.emplace<runtime::ConditionalWork>();
    made.value = std::move(value);
    made.kind = static_cast<runtime::ConditionalWork::Kind>(given.type);
    made.context = context;
    for (unsigned i = 0; i < given.size; ++i) {
        made.bodies.push_back(runtime::Graph::create(runtime::Graph::Owner::conditional_node));
        made.bodies.back()->set_owner(runtime::Graph::Owner::conditional_node, &parent);
    }
    return Status::success;
}

/// Bytes of the union that the parameters of a type take.
std::size_t parameter_bytes(int type) {
    using runtime::NodeType;
    switch (static_cast<NodeType>(type)) {
    case NodeType::kernel: return sizeof(CUDA_KERNEL_NODE_PARAMS);
    case NodeType::copy: return sizeof(CUDA_MEMCPY_NODE_PARAMS);
    case NodeType::fill: return sizeof(CUDA_MEMSET_NODE_PARAMS_v2);
    case NodeType::host: return sizeof(CUDA_HOST_NODE_PARAMS) + 8; // a mode, from CUDA 13.2 on
    case NodeType::child: return sizeof(CUDA_CHILD_GRAPH_NODE_PARAMS);
    case NodeType::empty: return 0;
    case NodeType::event_wait:
    case NodeType::event_record: return sizeof(CUDA_EVENT_NODE_PARAMS);
    case NodeType::semaphore_signal:
    case NodeType::semaphore_wait: return sizeof(CUDA_EXT_SEM_NODE_PARAMS);
    case NodeType::allocate: return sizeof(CUDA_MEM_ALLOC_NODE_PARAMS);
    case NodeType::free: return sizeof(CUDA_MEM_FREE_NODE_PARAMS);
    case NodeType::memory_operations: return sizeof(CUDA_BATCH_MEM_OP_NODE_PARAMS);
    case NodeType::conditional: return sizeof(CUDA_CONDITIONAL_NODE_PARAMS);
    }
    return 0;
}

/// The driver wants everything behind the parameters to be 0.
bool has_reserved_bits(const CUgraphNodeParams& given) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&given.reserved1);
    const auto is_set = [](std::uint8_t byte) { return byte != 0; };
    return given.reserved0[0] || given.reserved0[1] || given.reserved0[2] || given.reserved2 ||
           std::any_of(bytes + parameter_bytes(given.type), bytes + sizeof given.reserved1, is_set);
}

} // namespace

CUgraph* bodies_of(const runtime::ConditionalWork& work) {
    work.handles.clear();
    for (const auto& body : work.bodies) work.handles.push_back(body.get());
    return reinterpret_cast<CUgraph*>(work.handles.data());
}

Status make_any_work(CUgraphNodeParams& given, runtime::Graph& parent, NodeWork& work) {
    using runtime::NodeType;
    if (has_reserved_bits(given)) return Status::invalid_value;
    switch (static_cast<NodeType>(given.type)) {
    case NodeType::kernel: return make_work(given.kernel, work.emplace<runtime::KernelWork>());
    case NodeType::copy:
        if (given.memcpy.flags || given.memcpy.reserved) return Status::invalid_value;
        return make_work(given.memcpy.copyParams, given.memcpy.copyCtx, work.emplace<runtime::CopyWork>());
    case NodeType::fill: {
        CUDA_MEMSET_NODE_PARAMS fill{};
        std::memcpy(&fill, &given.memset, sizeof fill);
        return make_work(fill, given.memset.ctx, work.emplace<runtime::FillWork>());
    }
    case NodeType::host: return make_work(given.host, work.emplace<runtime::HostWork>());
    case NodeType::child: return make_child_work(given.graph, parent, work);
    case NodeType::empty: work.emplace<std::monostate>(); return Status::success;
    case NodeType::event_wait:
    case NodeType::event_record: return make_event_work(given.event.event, static_cast<NodeType>(given.type), work);
    case NodeType::allocate: return make_work(given.alloc, work.emplace<runtime::AllocateWork>());
    case NodeType::free: return make_work(given.free, work.emplace<runtime::FreeWork>());
    case NodeType::memory_operations: return make_work(given.memOp, work.emplace<runtime::MemoryOperationsWork>());
    case NodeType::conditional: return make_conditional(given.conditional, parent, work);
    case NodeType::semaphore_signal: return make_work(given.semaphores, work.emplace<runtime::SemaphoreSignalWork>());
    case NodeType::semaphore_wait: return make_work(given.semaphores, work.emplace<runtime::SemaphoreWaitWork>());
    }
    return Status::invalid_value;
}

Status make_changed_work(const CUgraphNodeParams& given, const NodeWork& old, NodeWork& work) {
    using runtime::NodeType;
    const NodeType type = runtime::type_of(old);
    if (given.type != static_cast<int>(type) || (type != NodeType::conditional && has_reserved_bits(given)))
        return Status::invalid_value;
    switch (type) {
    case NodeType::kernel: {
        auto& made = work.emplace<runtime::KernelWork>();
        made.attributes = std::get<runtime::KernelWork>(old).attributes;
        const Status status = make_work(given.kernel, made);
        apply_attributes(made);
        return status;
    }
    case NodeType::copy: {
        const auto& copy = std::get<runtime::CopyWork>(old);
        const CUcontext context =
            given.memcpy.copyCtx ? given.memcpy.copyCtx : reinterpret_cast<CUcontext>(copy.context);
        return make_work(given.memcpy.copyParams, context, work.emplace<runtime::CopyWork>());
    }
    case NodeType::fill: {
        const auto& fill = std::get<runtime::FillWork>(old);
        const CUcontext context = given.memset.ctx ? given.memset.ctx : reinterpret_cast<CUcontext>(fill.context);
        CUDA_MEMSET_NODE_PARAMS parameters{};
        std::memcpy(&parameters, &given.memset, sizeof parameters);
        return make_work(parameters, context, work.emplace<runtime::FillWork>());
    }
    case NodeType::host: return make_work(given.host, work.emplace<runtime::HostWork>());
    case NodeType::event_wait:
    case NodeType::event_record: return make_event_work(given.event.event, type, work);
    case NodeType::memory_operations: return make_work(given.memOp, work.emplace<runtime::MemoryOperationsWork>());
    case NodeType::semaphore_signal: return make_work(given.semaphores, work.emplace<runtime::SemaphoreSignalWork>());
    case NodeType::semaphore_wait: return make_work(given.semaphores, work.emplace<runtime::SemaphoreWaitWork>());
    case NodeType::conditional: return Status::not_supported;
    default: return Status::invalid_value;
    }
}

Status any_parameters_of(const Node& node, CUgraphNodeParams& place) {
    using runtime::NodeType;
    place = {};
    place.type = static_cast<int>(node.type());
    switch (node.type()) {
    case NodeType::kernel: place.kernel = parameters_of(std::get<runtime::KernelWork>(node.work)); break;
    case NodeType::copy: {
        const auto& copy = std::get<runtime::CopyWork>(node.work);
        place.memcpy.copyParams = parameters_of(copy);
        place.memcpy.copyCtx = reinterpret_cast<CUcontext>(copy.context);
        break;
    }
    case NodeType::fill: {
        const auto& fill = std::get<runtime::FillWork>(node.work);
        const CUDA_MEMSET_NODE_PARAMS parameters = parameters_of(fill);
        std::memcpy(&place.memset, &parameters, sizeof parameters);
        place.memset.ctx = reinterpret_cast<CUcontext>(fill.context);
        break;
    }
    case NodeType::host: place.host = parameters_of(std::get<runtime::HostWork>(node.work)); break;
    case NodeType::child: {
        const auto& child = std::get<runtime::ChildWorkOfGraph>(node.work);
        place.graph.graph = to_handle<CUgraph>(child.graph);
        place.graph.ownership = child.graph->owner() == runtime::Graph::Owner::moved_child;
        break;
    }
    case NodeType::empty: break;
    case NodeType::event_wait:
        place.event.event = to_handle<CUevent>(std::get<runtime::EventWaitWork>(node.work).event);
        break;
    case NodeType::event_record:
        place.event.event = to_handle<CUevent>(std::get<runtime::EventRecordWork>(node.work).event);
        break;
    case NodeType::allocate: place.alloc = parameters_of(std::get<runtime::AllocateWork>(node.work)); break;
    case NodeType::free: place.free.dptr = std::get<runtime::FreeWork>(node.work).memory->pointer(); break;
    case NodeType::conditional: {
        const auto& conditional = std::get<runtime::ConditionalWork>(node.work);
        place.conditional = {conditional.value->handle, static_cast<int>(conditional.kind),
                             static_cast<unsigned>(conditional.bodies.size()), bodies_of(conditional),
                             reinterpret_cast<CUcontext>(conditional.context)};
        break;
    }
    case NodeType::memory_operations:
        place.memOp = parameters_of(std::get<runtime::MemoryOperationsWork>(node.work));
        break;
    case NodeType::semaphore_signal:
        place.semaphores = parameters_of(std::get<runtime::SemaphoreSignalWork>(node.work));
        break;
    case NodeType::semaphore_wait:
        place.semaphores = parameters_of(std::get<runtime::SemaphoreWaitWork>(node.work));
        break;
    }
    return Status::success;
}

Status check_place(const runtime::Graph& graph, const NodeWork& work) {
    using runtime::NodeType;
    if (const auto* free = std::get_if<runtime::FreeWork>(&work); free && free->memory->is_freed_in_graph)
        return Status::invalid_value;
    using Owner = runtime::Graph::Owner;
    const NodeType type = runtime::type_of(work);
    const bool memory = type == NodeType::allocate || type == NodeType::free;
    for (const runtime::Graph* above = &graph; above; above = above->parent()) {
        if (above->owner() == Owner::moved_child && memory) return Status::not_supported;
        if (above->owner() == Owner::child_node && (memory || type == NodeType::conditional))
            return Status::not_supported;
    }
    return Status::success;
}

} // namespace ptarmigan::shim
