// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/conditional_value.h"

#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace ptarmigan::runtime {
namespace {

/// Values by handle: what kernels look up.
struct ConditionalValues {
    std::shared_mutex mutex;
    std::unordered_map<std::uint64_t, std::weak_ptr<ConditionalValue>> values;
    std::uint64_t next = 1;
    static ConditionalValues& get() {
        static auto* values = new ConditionalValues;
        return *values;
    }
};

} // namespace

std::shared_ptr<ConditionalValue> ConditionalValue::create(Context& context, std::uint32_t value, bool assign_default) {
    ConditionalValues& all = ConditionalValues::get();
    std::unique_lock lock(all.mutex);
    const std::uint64_t handle = all.next++;
    auto made = std::make_shared<ConditionalValue>(context, value, assign_default, handle);
    all.values[handle] = made;
    return made;
}

std::shared_ptr<ConditionalValue> ConditionalValue::find(std::uint64_t handle) {
    ConditionalValues& all = ConditionalValues::get();
    std::shared_lock lock(all.mutex);
    const auto found = all.values.find(handle);
    return found == all.values.end() ? nullptr : found->second.lock();
}

ConditionalValue::~ConditionalValue() {
    ConditionalValues& all = ConditionalValues::get();
    std::unique_lock lock(all.mutex);
    all.values.erase(handle);
}

} // namespace ptarmigan::runtime
