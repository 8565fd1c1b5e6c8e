// SPDX-License-Identifier: Apache-2.0
#include "runtime/context/green_context.h"

#include "runtime/base/handle_table.h"
#include "runtime/context/context.h"
#include "runtime/context/current_context.h"
#include "runtime/device/device.h"

#include <algorithm>

namespace ptarmigan::runtime {

SmGranularity sm_granularity(bool apart) {
    return apart ? SmGranularity{2, 2} : SmGranularity{8, 8};
}

SmSplit split_multiprocessors(unsigned least, bool apart) {
    const unsigned all = Device::get().multiprocessors();
    const SmGranularity granularity = sm_granularity(apart);
    const unsigned wanted = std::max(least, granularity.least);
    const unsigned rounded = (wanted + granularity.alignment - 1) / granularity.alignment * granularity.alignment;
    const unsigned size = std::min(rounded, all);
    unsigned groups = all / size;
    // The smallest parts lie within a cluster of processors (GPC) each, of which some have only two.
    if (!apart && size == granularity.least) {
        groups = 0;
        for (const unsigned members : multiprocessor_groups(all)) groups += members / size;
        groups = std::max(groups, 1u);
    }
    return {size, groups};
}

unsigned scheduled_together(const SmRequest& request) {
    return request.together ? request.together : sm_granularity(false).alignment;
}

Status take_multiprocessors(const SmRequest& request, unsigned all, SmRange& rest, SmRange& part) {
    constexpr unsigned most_together = 32, pair = 2;
    const unsigned together = scheduled_together(request);
    if (together % pair != 0 || together > most_together || request.count % pair != 0) return Status::invalid_value;
    if (request.count > all || (request.count % together != 0 && !request.backfill))
        return Status::invalid_resource_configuration;
    // Of each cluster of processors what of it lies in `rest`.
    unsigned grouped = 0, begin = 0;
    for (const unsigned members : multiprocessor_groups(Device::get().multiprocessors())) {
        const unsigned first = std::max(begin, rest.first);
        const unsigned end = std::min(begin + members, rest.first + rest.count);
        if (end > first) grouped += (end - first) / together * together;
        begin += members;
    }
    const unsigned most = request.backfill && grouped > 0 ? rest.count / pair * pair : grouped;
    if (request.count > most) return Status::invalid_resource_configuration;
    const unsigned count = request.count ? request.count : most;
    part = {rest.first, count};
    rest.first += count, rest.count -= count;
    return Status::success;
}

Status GreenContext::create(SmRange range, int device, std::shared_ptr<GreenContext>& green) {
    if (const Status status = primary_context(device)->retain(); status != Status::success) return status;
    auto context = std::make_shared<Context>(Context::Kind::green, 0, device);
    green = std::make_shared<GreenContext>(range, context->id());
    context->set_green(green);
    green->context_ = std::move(context);
    HandleTable<Context>::get().add(green->context_);
    HandleTable<GreenContext>::get().add(green);
    return Status::success;
}

Status GreenContext::destroy() {
    const std::shared_ptr<GreenContext> self = HandleTable<GreenContext>::get().remove(this);
    if (!self) return Status::invalid_handle;
    HandleTable<Context>::get().remove(context_.get());
    context_->end_green();
    return context_->root().release();
}

std::shared_ptr<GreenContext> current_green_context() {
    const Context* context = current_context();
    return context ? context->green() : nullptr;
}

} // namespace ptarmigan::runtime
