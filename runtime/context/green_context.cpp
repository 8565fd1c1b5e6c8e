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
