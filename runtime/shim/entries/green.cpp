// SPDX-License-Identifier: Apache-2.0
// Device resources and green contexts. What is refused, and with what, is an H100's
// (tests/driver_api/answers/green_answers_h100.txt).
#include "runtime/context/green_context.h"

#include "runtime/shim/convert.h"
#include "runtime/shim/stream_types.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::Context;
using runtime::Device;
using runtime::Event;
using runtime::GreenContext;
using runtime::SmRange;
using runtime::Stream;

namespace {

constexpr int resource_none = 0, resource_sm = 1;
constexpr unsigned split_apart = 1, split_for_clusters = 2, default_stream_flag = 1;

/// What is ours in CUdevResource::internal.
struct Inside {
    std::uint64_t mark;
    SmRange range;
    int device;
};
constexpr std::uint64_t our_mark = 0x7074617270736d31;

CUdevResource make_resource(SmRange range, int device, const runtime::SmGranularity& granularity) {
    CUdevResource resource;
    std::memset(&resource, 0, sizeof resource);
    resource.type = resource_sm;
    const Inside inside{our_mark, range, device};
    std::memcpy(resource.internal, &inside, sizeof inside);
    resource.sm.smCount = range.count;
    resource.sm.minSmPartitionSize = granularity.least;
    resource.sm.smCoscheduledAlignment = granularity.alignment;
    return resource;
}

/// The multiprocessors of a resource that we made and nobody has changed.
bool read_resource(const CUdevResource& resource, SmRange& range, int& device) {
    Inside inside;
    std::memcpy(&inside, resource.internal, sizeof inside);
    if (resource.type != resource_sm || inside.mark != our_mark) return false;
    range = inside.range;
    device = inside.device;
    const unsigned all = Device::get().multiprocessors();
    return range.count != 0 && range.count == resource.sm.smCount && range.first < all &&
           range.count <= all - range.first;
}

Status give_resource(CUdevResource* resource, int type, SmRange range, int device) {
    if (type != resource_sm) return Status::invalid_resource_type;
    if (!resource) return Status::invalid_value;
    if (range.count == 0) range = {0, Device::get().multiprocessors()};
    *resource = make_resource(range, device, runtime::sm_granularity(false));
    return Status::success;
}

/// What cuDevResourceGenerateDesc hands out.
struct Description {
    SmRange range;
    int device = 0; ///< of the last resource
};

SmRange range_of(const Context& context) {
    const std::shared_ptr<GreenContext> green = context.green();
    return green ? green->range() : SmRange{};
}

/// A handle of a context, or null: `body(Context&)`, the one that was named.
template <class Body> CUresult named_context_entry(CUcontext handle, Body&& body) {
    return entry([&] {
        const std::shared_ptr<Context> context = find_handle<Context>(handle);
        if (!context) return Status::invalid_context;
        const Status status = context->status();
        return status == Status::success ? body(*context) : status;
    });
}

Status record_all(Context& context, const GreenContext* green, CUevent handle) {
    const auto event = find_handle<Event>(handle);
    if (!event || &event->context() != &context.root()) return Status::invalid_handle;
    return event->record_all(green);
}

Status wait_in_all(Context& context, const GreenContext* green, CUevent handle) {
    const auto event = find_handle<Event>(handle);
    return event ? event->make_all_wait(context.root(), green) : Status::invalid_handle;
}

/// libcudart 13 names a green context by its CUcontext, to the driver too.
template <class Body> CUresult green_entry(CUgreenCtx handle, Body&& body) {
    return entry([&] {
        std::shared_ptr<GreenContext> green = find_handle<GreenContext>(handle);
        if (const auto context = green ? nullptr : find_handle<Context>(handle)) green = context->green();
        return green ? body(*green) : handle ? Status::invalid_handle : Status::invalid_context;
    });
}

} // namespace

PTM_API(cuDeviceGetDevResource, CUdevice device, CUdevResource* resource, int type) {
    return entry([&] {
        if (!resource) return Status::invalid_value;
        if (device < 0 || device >= Device::count()) return Status::invalid_device;
        return give_resource(resource, type, {}, device);
    });
}
PTM_API(cuCtxGetDevResource, CUcontext handle, CUdevResource* resource, int type) {
    PTM_REQUIRE(resource);
    return named_context_entry(
        handle, [&](Context& context) { return give_resource(resource, type, range_of(context), context.device()); });
}
PTM_API(cuGreenCtxGetDevResource, CUgreenCtx handle, CUdevResource* resource, int type) {
    PTM_REQUIRE(resource);
    return green_entry(handle, [&](GreenContext& green) {
        return give_resource(resource, type, green.range(), green.context()->device());
    });
}
PTM_STREAM_API(cuStreamGetDevResource, cuStreamGetDevResource_ptsz,
               (CUstream stream, CUdevResource* resource, int type), (stream, resource, type)) {
    return stream_entry(stream, default_stream, [&](Stream& queue) {
        return give_resource(resource, type, queue.green() ? queue.green()->range() : SmRange{},
                             queue.context().device());
    });
}

PTM_API(cuDevSmResourceSplitByCount, CUdevResource* groups, unsigned* count, const CUdevResource* input,
        CUdevResource* rest, unsigned flags, unsigned least) {
    return entry([&] {
        if (!count || !input || (flags & split_apart && flags & split_for_clusters)) return Status::invalid_value;
        if (input->type != resource_sm) return Status::invalid_resource_type;
        SmRange range;
        int device = 0;
        const unsigned all = Device::get().multiprocessors();
        // Parts are not split again, as by the driver of CUDA 13.0.
        if (!read_resource(*input, range, device) || range.count != all || least > all)
            return Status::invalid_resource_configuration;
        const runtime::SmSplit split = runtime::split_multiprocessors(least, flags & split_apart);
        if (!groups) {
            *count = split.groups;
            return Status::success;
        }
        if (*count == 0) return Status::invalid_value;
        *count = std::min(*count, split.groups);
        for (unsigned i = 0; i < *count; ++i) {
            groups[i] = make_resource({range.first, split.size}, device, {});
            range.first += split.size, range.count -= split.size;
        }
        if (rest) {
            *rest = make_resource(range, device, {});
            if (range.count == 0) rest->type = resource_none;
        }
        return Status::success;
    });
}

PTM_API(cuDevSmResourceSplit, CUdevResource* results, unsigned count, const CUdevResource* input,
        CUdevResource* remainder, unsigned flags, CU_DEV_SM_RESOURCE_GROUP_PARAMS* groups) {
    return entry([&] {
        constexpr unsigned backfill = 1, of_locality_domain = 2, more_of_locality_domain = 4;
        constexpr unsigned localities = of_locality_domain | more_of_locality_domain;
        if (!input || !groups || count == 0 || flags != 0) return Status::invalid_value;
        if (input->type != resource_sm) return Status::invalid_resource_type;
        SmRange rest;
        int device = 0;
        if (!read_resource(*input, rest, device)) return Status::invalid_resource_configuration;
        const unsigned all = rest.count;
        std::vector<SmRange> parts;
        for (unsigned i = 0; i < count; ++i) {
            const CU_DEV_SM_RESOURCE_GROUP_PARAMS& group = groups[i];
            const auto is_set = [](unsigned word) { return word != 0; };
            if (group.flags & ~(backfill | localities)) return Status::invalid_value;
            if (std::any_of(std::begin(group.reserved), std::end(group.reserved), is_set)) return Status::invalid_value;
            if (group.flags & localities) return Status::invalid_resource_configuration; // there are no domains
            const runtime::SmRequest request{group.smCount, group.coscheduledSmCount, (group.flags & backfill) != 0};
            SmRange part;
            const Status status = runtime::take_multiprocessors(request, all, rest, part);
            if (status != Status::success) return status;
            if (results && part.count < runtime::scheduled_together(request))
                return Status::invalid_resource_configuration;
            parts.push_back(part);
        }
        for (unsigned i = 0; i < count; ++i) {
            const unsigned together = runtime::scheduled_together({0, groups[i].coscheduledSmCount, false});
            groups[i].smCount = parts[i].count;
            if (!results) continue;
            results[i] = make_resource(parts[i], device, {together, together});
            results[i].sm.flags = groups[i].flags;
        }
        if (remainder) {
            *remainder = make_resource(rest, device, {});
            if (rest.count == 0) remainder->type = resource_none;
        }
        return Status::success;
    });
}

PTM_API(cuDevResourceGenerateDesc, CUdevResourceDesc* handle, CUdevResource* resources, unsigned count) {
    return entry([&] {
        if (!handle || !resources || count == 0) return Status::invalid_value;
        auto description = std::make_shared<Description>();
        for (unsigned i = 0; i < count; ++i) {
            SmRange range;
            if (resources[i].type != resource_sm) return Status::invalid_resource_type;
            if (!read_resource(resources[i], range, description->device)) return Status::invalid_resource_configuration;
            if (i == 0)
                description->range = range;
            else
                description->range.count += range.count; // which of them it is matters for %smid only
        }
        // The same part twice counts once more, but never for more than there are.
        description->range.count =
            std::min(description->range.count, Device::get().multiprocessors() - description->range.first);
        *handle = to_handle<CUdevResourceDesc>(description);
        runtime::HandleTable<Description>::get().add(description);
        return Status::success;
    });
}

PTM_API(cuGreenCtxCreate, CUgreenCtx* handle, CUdevResourceDesc description, CUdevice device, unsigned flags) {
    return entry([&] {
        if (device < 0 || device >= Device::count()) return Status::invalid_device;
        const auto resources = find_handle<Description>(description);
        // No flags are of CUDA 13.1, whose libcudart gives none. A green context has a default stream all the same.
        if (!handle || (description && !resources) || (flags & ~default_stream_flag) != 0) return Status::invalid_value;
        if (resources && resources->device != device) return Status::invalid_device;
        const SmRange range = resources ? resources->range : SmRange{0, Device::get().multiprocessors()};
        std::shared_ptr<GreenContext> green;
        const Status status = GreenContext::create(range, device, green);
        if (status == Status::success) *handle = to_handle<CUgreenCtx>(green);
        return status;
    });
}
PTM_API(cuGreenCtxDestroy, CUgreenCtx handle) {
    return green_entry(handle, [](GreenContext& green) { return green.destroy(); });
}
PTM_API(cuCtxFromGreenCtx, CUcontext* context, CUgreenCtx handle) {
    PTM_REQUIRE(context);
    return green_entry(handle, [&](GreenContext& green) {
        if (!context) return Status::invalid_value;
        *context = to_handle<CUcontext>(green.context());
        return Status::success;
    });
}
PTM_API(cuGreenCtxGetId, CUgreenCtx handle, unsigned long long* id) {
    PTM_REQUIRE(id);
    return green_entry(handle, [&](GreenContext& green) {
        if (!id) return Status::invalid_value;
        *id = green.id();
        return Status::success;
    });
}
PTM_API(cuGreenCtxStreamCreate, CUstream* handle, CUgreenCtx green, unsigned flags, int priority) {
    PTM_REQUIRE(handle);
    return green_entry(green, [&](GreenContext& context) {
        if (!handle || flags != 1) return Status::invalid_value; // non-blocking ones only
        std::shared_ptr<Stream> stream;
        const Status status =
            Stream::create(context.context()->root(), flags, priority, stream, context.shared_from_this());
        if (status == Status::success) *handle = to_handle<CUstream>(stream);
        return status;
    });
}
PTM_API(cuGreenCtxRecordEvent, CUgreenCtx handle, CUevent event) {
    return green_entry(handle, [&](GreenContext& green) { return record_all(*green.context(), &green, event); });
}
PTM_API(cuGreenCtxWaitEvent, CUgreenCtx handle, CUevent event) {
    return green_entry(handle, [&](GreenContext& green) { return wait_in_all(*green.context(), &green, event); });
}
PTM_API(cuCtxRecordEvent, CUcontext handle, CUevent event) {
    return named_context_entry(handle,
                               [&](Context& context) { return record_all(context, context.green().get(), event); });
}
PTM_API(cuCtxWaitEvent, CUcontext handle, CUevent event) {
    return named_context_entry(handle,
                               [&](Context& context) { return wait_in_all(context, context.green().get(), event); });
}
